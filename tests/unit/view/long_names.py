"""Records whose names are as long as lessons and learners make them."""

import msgspec


def with_long_names(*records):
    """The records, and each once more under a longer name and with other settings, which a figure's legend says too."""
    longer = [
        msgspec.structs.replace(
            record,
            variant=f"{record.variant}-of-a-longer-name",
            config={**record.config, "init_scale": 2.0**40, "growth_interval": 10 + place},
        )
        for place, record in enumerate(records)
    ]
    same = [msgspec.structs.replace(record, config={**record.config, "init_scale": 1.0}) for record in longer]
    return *records, longer[0], same[0]
