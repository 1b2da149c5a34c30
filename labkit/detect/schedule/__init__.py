"""The learning rate over a run: does it follow the schedule that it was to follow?"""
