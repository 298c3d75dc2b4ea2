"""Writes the text the simulator reads: the first 64 KiB of the validation chapters."""
import argparse

import numpy as np

import kjv_text
import safetensors_io

LENGTH = 65536


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", help="safetensors file to write")
    output = parser.parse_args().output
    _, valid = kjv_text.load_split()
    source = ("King James Bible (1611, public domain), Debian bible-kjv-text 4.38; "
              "chapters 11, 31, 51, ... of 1189")
    safetensors_io.save(output, {"valid": np.frombuffer(valid[:LENGTH], np.uint8)},
                        {"source": source})


if __name__ == "__main__":
    main()
