"""What a learner is given beside a lesson: records without a label, to diagnose."""
