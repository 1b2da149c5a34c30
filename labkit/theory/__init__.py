"""What should be: formulas and models of the field, as plain functions of numbers. No records, no torch."""
