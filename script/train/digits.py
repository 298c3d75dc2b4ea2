"""The handwritten digits: fixed split and integer preprocessing.

1797 images of 8 x 8 pixels, values 0..16, from the UCI "Optical Recognition of Handwritten Digits"
set (E. Alpaydin, C. Kaynak, 1998) as bundled by scikit-learn.
"""
import numpy as np

BASE_SIZE = 8  # pixels per side of the stored images
INPUT_MAX = 127  # largest integer input of a model; the real value is integer / INPUT_MAX


def load_split():
    """Returns (train_images, train_labels, test_images, test_labels); every fifth image is a test.

    Images are uint8 [count, 8, 8] with values 0..16, labels uint8 [count].
    """
    from sklearn.datasets import load_digits  # here, so that preprocessing needs numpy alone

    digits = load_digits()
    images = digits.images.astype(np.uint8)
    labels = digits.target.astype(np.uint8)
    is_test = np.arange(len(labels)) % 5 == 0
    return images[~is_test], labels[~is_test], images[is_test], labels[is_test]


def preprocess(images, upscale):
    """Maps stored images, values 0..16, to model inputs int32 [count, 8 * upscale, 8 * upscale].

    upscale 1 multiplies by eight. upscale 2 interpolates bilinearly: every pixel becomes 2 x 2
    pixels with the weights 9, 3, 3, 1 for itself, its two direct neighbours and its diagonal one
    (edge pixels are repeated), which sum to sixteen; the result is halved and rounded up at .5.
    Both saturate at INPUT_MAX.
    """
    images = images.astype(np.int32)
    if upscale == 1:
        return np.minimum(images * 8, INPUT_MAX)
    if upscale != 2:
        raise ValueError(f"upscale: {upscale}, expected 1 or 2")
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)), mode="edge")
    size = images.shape[1]
    result = np.zeros((len(images), 2 * size, 2 * size), np.int32)
    for row in range(2):
        for column in range(2):
            # Even output rows lie next to the pixel above, odd ones next to the pixel below.
            rows = slice(2 * row, 2 * row + size)
            columns = slice(2 * column, 2 * column + size)
            vertical = padded[:, rows, 1:-1]
            horizontal = padded[:, 1:-1, columns]
            diagonal = padded[:, rows, columns]
            result[:, row::2, column::2] = 9 * images + 3 * vertical + 3 * horizontal + diagonal
    return np.minimum((result + 1) >> 1, INPUT_MAX)
