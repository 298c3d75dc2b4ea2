"""Fixed attention masks: the ViTCoD rule, random masks of the same size, and their form in a file.

Masks are bool [..., heads, queries, keys], True where a cell is kept. Query 0 and key 0 are the
class token's: its row and column are kept as a whole.
"""
import numpy as np

THETA_STEPS = 1 << 20  # thetas per unit; found thetas are multiples of 1 / THETA_STEPS
PUBLISHED_THRESHOLD, PUBLISHED_TOKENS = 50, 197  # of the authors' DeiT masks


class RankedAttention:
    """Mean attention [layers, heads, tokens, tokens] (rows sum to 1), every row ranked.

    The rule: in each row keep the largest entries until their sum reaches theta, and `margin` more.
    The authors of ViTCoD (HPCA 2023) keep one more. Sums are 64-bit floats, added from the largest
    entry down; of equal entries the one of the lower key goes first.
    """

    def __init__(self, attention, margin):
        if (attention.ndim != 4 or attention.shape[2] != attention.shape[3]
                or not np.allclose(attention.sum(-1), 1.0, atol=1e-3)):
            raise ValueError(f"attention of shape {attention.shape}: expected [layers, heads, "
                             "tokens, tokens] with rows that sum to 1")
        attention = attention.astype(np.float64)
        self._order = np.argsort(-attention, -1, kind="stable")
        self._sums = np.cumsum(np.take_along_axis(attention, self._order, -1), -1)
        self._margin = margin

    def mask(self, theta):
        """The mask for theta above 0; above 1 everything is kept."""
        reaching = (self._sums < theta).sum(-1, keepdims=True)
        first = np.arange(self._order.shape[-1]) < reaching + 1 + self._margin
        kept = np.zeros(self._order.shape, bool)
        np.put_along_axis(kept, self._order, first, -1)
        kept[..., 0, :] = True
        kept[..., :, 0] = True
        return kept

    def find_theta(self, wanted):
        """The theta whose mask comes closest to the sparsity `wanted`, of two the sparser mask's.

        Raises ValueError when the rule cannot prune that much.
        """

        def sparsity_at(step):
            return sparsity(self.mask(step / THETA_STEPS))

        sparser, denser = 1, 2 * THETA_STEPS
        if not 0 <= wanted <= sparsity_at(sparser):
            raise ValueError(f"sparsity {wanted}: expected 0 to {sparsity_at(sparser):.4f}, the "
                             f"sparsest mask with {1 + self._margin} entries of a row and the "
                             "class token's row and column")
        while denser - sparser > 1:
            middle = (sparser + denser) // 2
            if sparsity_at(middle) >= wanted:
                sparser = middle
            else:
                denser = middle
        keep_more = wanted - sparsity_at(denser) < sparsity_at(sparser) - wanted
        return (denser if keep_more else sparser) / THETA_STEPS


def sparsity(mask):
    """The share of pruned cells among all cells."""
    return 1 - np.count_nonzero(mask) / mask.size


def shuffled(mask, seed):
    """A mask with as many cells in every head, at random; the class token's are kept."""
    generator = np.random.default_rng(seed)
    result = mask.copy()
    inner = mask[..., 1:, 1:]
    cells = inner.reshape(*mask.shape[:2], -1)
    result[..., 1:, 1:] = generator.permuted(cells, axis=-1).reshape(inner.shape)
    return result


def global_columns(mask):
    """Global columns of every head: those that more queries keep than the threshold.

    The authors' threshold, 50 of 197 tokens, is scaled to the tokens of the mask.
    """
    threshold = round(PUBLISHED_THRESHOLD * mask.shape[-2] / PUBLISHED_TOKENS)
    return (mask.sum(-2) > threshold).sum(-1)


def pack(mask):
    """The mask as a file keeps it: u8 [..., ceil(keys / 8)], key k in bit k % 8 (bit 0 is the
    least significant) of byte k / 8, spare bits 0."""
    return np.packbits(mask, axis=-1, bitorder="little")


def unpack(packed, keys):
    return np.unpackbits(packed, axis=-1, count=keys, bitorder="little").astype(bool)
