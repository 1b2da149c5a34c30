"""How it looks: figures, cards, widgets, the lesson frame. Computes nothing; draws what record and detect say."""
