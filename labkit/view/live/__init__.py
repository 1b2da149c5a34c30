"""The picture that moves: lanes, loss and words of a run while it goes on and afterwards, in a notebook's page."""
