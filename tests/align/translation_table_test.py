"""The M-step of the translation table."""

import jax.numpy as jnp
import numpy as np
import scipy.special

from jaxmt.align import translation_table


def test_digamma_equals_scipy():
  x = np.concatenate([np.logspace(-4, 6, 300), [0.01, 1.0, 5.999, 6.0]])
  x = x.astype(np.float32)
  expected = scipy.special.psi(x.astype(np.float64))
  np.testing.assert_allclose(
    translation_table.digamma(jnp.asarray(x)), expected, rtol=2e-5, atol=2e-6
  )
