"""
08: NumPy.

The functions take NumPy arrays as they are, of any strides, and give back NumPy's numbers; value_and_grad computes the
loss and its gradient in one pass. PyTorch is not needed. The last part fits a line by gradient descent with nothing but
NumPy around the loss.
"""
import numpy as np

import onepass

prediction = np.array([2.5, 0.0, 2.0, 8.0], np.float32)
target = np.array([3.0, -0.5, 2.0, 7.0], np.float32)

loss = onepass.mse_loss(prediction, target)
print(f"mse               {loss} ({type(loss).__name__})")
assert loss == 0.375 and type(loss) is np.float32

loss, gradient = onepass.value_and_grad("smooth_l1", prediction, target, beta=0.5)
print(f"smooth_l1         {loss}, gradient {gradient}")
assert loss == 0.3125 and gradient.tolist() == [-0.25, 0.25, 0.0, 0.25]

# A view with a step and a view of a transposed matrix are read where they lie.
matrix = np.arange(12, dtype=np.float64).reshape(3, 4)
loss = onepass.mse_loss(matrix.T[::2], np.zeros((2, 3)), reduction="sum")
print(f"strided views     {loss}")
assert loss == (matrix[:, ::2] ** 2).sum()

# A mask takes the padding out of the mean, whatever stands there.
padded = np.array([1.0, 2.0, 3.0, np.nan])
loss = onepass.mse_loss(padded, np.zeros(4), mask=np.array([True, True, True, False]))
print(f"without padding   {loss:.6f}")
assert abs(loss - 14 / 3) < 1e-15

# Losses that PyTorch lacks have functions too, and those with a third operand.
loss = onepass.quantile_loss(prediction, target, tau=0.9)
print(f"quantile, 0.9     {loss}")
assert abs(loss - (0.9 * 0.5 + 0.1 * 0.5 + 0.1 * 1) / 4) < 1e-7
loss = onepass.gaussian_nll_loss(prediction, target, np.full(4, 0.25, np.float32))
print(f"gaussian_nll      {loss:.6f}")
assert abs(loss - 0.5 * (np.log(0.25) + 1.5)) < 1e-6

# Gradient descent: y = 3 x - 1 out of noisy points, a few of which are far off.
rng = np.random.default_rng(94)
x = rng.uniform(-1, 1, 1000)
y = 3 * x - 1 + 0.05 * rng.standard_normal(1000)
y[:20] += 10
a = b = 0.0
for step in range(1000):
    loss, gradient = onepass.value_and_grad("smooth_l1", a * x + b, y)
    a, b = a - gradient @ x, b - gradient.sum()
print(f"fitted            y = {a:.2f} x {b:+.2f}")
assert abs(a - 3) < 0.05 and abs(b + 1) < 0.05
