"""What only the source of a script tells: settings that nothing reads, calls that nothing comes to."""
