"""Clusters that one does not have: theory and facts put together with what was measured here."""
