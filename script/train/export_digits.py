"""Writes the digits the simulator reads: all 360 test images and the first 256 training images."""
import argparse

import digits
import safetensors_io

CALIBRATION_COUNT = 256


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", help="safetensors file to write")
    output = parser.parse_args().output
    train_images, train_labels, test_images, test_labels = digits.load_split()
    tensors = {
        "calib_images": train_images[:CALIBRATION_COUNT],
        "calib_labels": train_labels[:CALIBRATION_COUNT],
        "test_images": test_images,
        "test_labels": test_labels,
    }
    source = ("UCI optdigits (E. Alpaydin, C. Kaynak, 1998) as bundled by scikit-learn; "
              "test = index % 5 == 0; values 0..16")
    safetensors_io.save(output, tensors, {"source": source})


if __name__ == "__main__":
    main()
