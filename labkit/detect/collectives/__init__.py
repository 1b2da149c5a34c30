"""Do ranks come to the same collectives: who waits where, and for whom."""
