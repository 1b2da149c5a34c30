"""What the texts claim, and what proves it: python scripts/sentences.py [--missing | --list] [NAME …]

Without an option: each ledger (tests/meta/proofs/NAME.toml) is checked, and what is wrong with it is printed.
--missing prints TOML for the claims that no ledger has yet, to be filled in; --list prints all claims.
NAME is the beginning of a lesson's name, such as 03. The kinds of proof stand in scripts/proofs/kinds.py.
"""

import argparse
import json
import sys

from proofs.ledger import Topic, topics


def stub(text: str) -> str:
    return f"[[sentence]]\ntext = {json.dumps(text, ensure_ascii=False)}\nproof = []\n"


def show(topic: Topic, args: argparse.Namespace) -> int:
    """Prints what was asked for; returns how many faults a check found."""
    if args.list or args.missing:
        for text in topic.claims if args.list else topic.missing():
            print(text if args.list else stub(text))
        return 0
    faults = topic.faults()
    print(f"{topic.name}: {len(topic.claims)} claims, {len(faults)} faults", *faults, sep="\n  ")
    return len(faults)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    wanted = [topic for topic in topics() if not args.names or topic.name.startswith(tuple(args.names))]
    if not wanted:
        parser.error(f"no lesson, deck or text begins with {', '.join(args.names)}")
    return int(sum(show(topic, args) for topic in wanted) > 0)


if __name__ == "__main__":
    sys.exit(main())
