"""What the labs train: small real models on real data, and one plain reference loop."""
