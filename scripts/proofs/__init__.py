"""What the lessons, the decks and the README say, sentence by sentence, and what proves it."""
