# The loss of causal language models: transformers' number, without its f32 copy of the logits; and inside its models,
# of random weights, so that nothing is downloaded.
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("numpy")

import onepass

from test_linear import allocated

VOCABULARY = 50


def batch(device="cpu", dtype=torch.float32, shape=(2, 9)):
    logits = (torch.randn(*shape, VOCABULARY) * 3).to(dtype).to(device).requires_grad_()
    labels = torch.randint(VOCABULARY, shape, device=device)
    labels[0, 4:6] = -100
    return logits, labels


def foretold(logits, labels, items=None, smoothing=0.0):
    """In float64: each label by the logits before it."""
    total, count = 0, 0
    for sample, wanted in zip(logits.double().cpu(), labels.cpu()):
        for place in range(1, len(wanted)):
            if wanted[place] != -100:
                logs = torch.log_softmax(sample[place - 1], -1)
                total = total - (1 - smoothing) * logs[wanted[place]] - smoothing * logs.mean()
                count += 1
    return total / (count if items is None else items)


@pytest.mark.parametrize("items", [None, 40, 40.0, torch.tensor(40)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_value_and_gradient(dtype, items, device):
    logits, labels = batch(device, dtype)
    if isinstance(items, torch.Tensor):
        items = items.to(device)
    value = onepass.causal_lm_loss(logits, labels, VOCABULARY, items)
    wanted = foretold(logits, labels, items if items is None else 40)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value.double().cpu(), wanted.detach(), rtol=1e-6, atol=0)
    (found,) = torch.autograd.grad(value, logits)
    (expected,) = torch.autograd.grad(wanted, logits)
    assert found.dtype == dtype and not found[:, -1].any()
    torch.testing.assert_close(found, expected)


def test_options(device):
    logits, labels = batch(device)
    torch.testing.assert_close(onepass.causal_lm_loss(logits, labels, VOCABULARY, label_smoothing=0.1).double().cpu(),
                               foretold(logits, labels, smoothing=0.1), rtol=1e-6, atol=0)
    shifted = torch.cat((labels[:, 1:], torch.full_like(labels[:, :1], -100)), 1)
    plain = onepass.causal_lm_loss(logits, labels, VOCABULARY)
    assert torch.equal(onepass.causal_lm_loss(logits, None, VOCABULARY, shift_labels=shifted), plain)
    assert torch.equal(onepass.causal_lm_loss(logits, labels, VOCABULARY, output_attentions=True), plain)
    assert torch.equal(onepass.causal_lm_loss(logits, labels.int(), VOCABULARY), plain)
    other = torch.where(labels == -100, 7, torch.where(labels == 7, 8, labels))
    assert torch.equal(onepass.causal_lm_loss(logits, other, VOCABULARY, ignore_index=7),
                       onepass.causal_lm_loss(logits, torch.where(labels == 7, 8, labels), VOCABULARY))


def test_labels_of_bytes(device):
    """Of which -100 is none: a uint8 would take it for 156, a class of 256."""
    logits = torch.randn(2, 9, 256, device=device)
    labels = torch.randint(150, 160, (2, 9), dtype=torch.uint8, device=device)
    assert torch.equal(onepass.causal_lm_loss(logits, labels, 256), onepass.causal_lm_loss(logits, labels.long(), 256))


def test_no_items(device):
    logits, labels = batch(device)
    assert onepass.causal_lm_loss(logits, torch.full_like(labels, -100), VOCABULARY).isnan()
    assert onepass.causal_lm_loss(logits, torch.full_like(labels, -100), VOCABULARY, 0).isnan()
    assert onepass.causal_lm_loss(logits, labels, VOCABULARY, 0).isinf()
    assert onepass.causal_lm_loss(logits, labels, VOCABULARY, torch.tensor(0)).isinf()
    assert onepass.causal_lm_loss(logits, labels, VOCABULARY, torch.tensor(0, device=device)).isinf()


@pytest.mark.skipif(not hasattr(torch.library, "register_autograd"), reason="this PyTorch asks its own functions")
@pytest.mark.parametrize("items", [None, 40, torch.tensor(40)], ids=str)
def test_compiled(items, device):
    logits, labels = batch(device)
    items = items.to(device) if isinstance(items, torch.Tensor) else items
    compiled = torch.compile(onepass.causal_lm_loss, fullgraph=True, backend="aot_eager")
    mine, peer = (function(logits, labels, VOCABULARY, items) for function in (compiled, onepass.causal_lm_loss))
    assert torch.equal(mine, peer)
    assert torch.equal(*(torch.autograd.grad(value, logits)[0] for value in (mine, peer)))


def test_no_f32_copy_of_the_logits():
    logits = torch.randn(2, 500, 3000).bfloat16().requires_grad_()
    labels = torch.randint(3000, (2, 500))
    size = 2 * logits.numel()
    step = lambda: torch.autograd.grad(onepass.causal_lm_loss(logits, labels, 3000), logits)
    step()
    _, peak, largest = allocated(step)
    assert largest <= size and peak < 1.1 * size  # the gradient
    with torch.no_grad():
        _, peak, _ = allocated(lambda: onepass.causal_lm_loss(logits, labels, 3000))
    assert peak < 0.1 * size


# -------------------------------------------------------------------- transformers --


@pytest.fixture(scope="module")
def transformers():
    package = pytest.importorskip("transformers", reason="transformers is not here, whose models take the loss")
    if not package.utils.is_torch_available():
        pytest.skip("this transformers does not know this PyTorch")
    return package


def models(transformers):
    small = dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                 num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=64)
    yield transformers.LlamaConfig(**small)
    yield transformers.Qwen2Config(**small)
    yield transformers.GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=2, n_positions=64)


def test_a_number_of_items_that_is_none():
    with pytest.raises(ValueError, match="num_items_in_batch is -3"):
        onepass.causal_lm_loss(torch.rand(2, 4, 5), torch.zeros(2, 4, dtype=torch.long), 5, num_items_in_batch=-3)


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("items", [None, 31])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_inside_a_model(transformers, which, items, dtype):
    config = list(models(transformers))[which]
    torch.manual_seed(94)
    model = transformers.AutoModelForCausalLM.from_config(config).to(dtype).eval()
    tokens = torch.randint(VOCABULARY, (3, 12))
    labels = tokens.clone()
    labels[:, :3] = -100
    given = {} if items is None else {"num_items_in_batch": torch.tensor(items)}
    found = {}
    for name in ("theirs", "ours"):
        if name == "ours":
            model.loss_function = onepass.causal_lm_loss
        model.zero_grad()
        loss = model(input_ids=tokens, labels=labels, **given).loss
        loss.backward()
        found[name] = loss.detach(), [p.grad.clone() for p in model.parameters()]
    torch.testing.assert_close(found["ours"][0], found["theirs"][0], rtol=3e-7 if dtype == torch.float32 else 1e-6,
                               atol=0)
    near = dict(rtol=1e-4, atol=1e-6) if dtype == torch.float32 else dict(rtol=5e-2, atol=1e-3)
    for mine, peer in zip(found["ours"][1], found["theirs"][1]):
        torch.testing.assert_close(mine, peer, **near)


def test_a_model_without_its_logits(transformers):
    """The body's hidden states and the head's weight, for linear_cross_entropy: the same loss and gradients."""
    config = next(models(transformers))
    torch.manual_seed(94)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    tokens = torch.randint(VOCABULARY, (3, 12))
    model(input_ids=tokens, labels=tokens).loss.backward()
    wanted = [p.grad.clone() for p in model.parameters()]
    theirs = model(input_ids=tokens, labels=tokens).loss
    model.zero_grad()
    hidden = model.model(input_ids=tokens).last_hidden_state[:, :-1]
    loss = onepass.linear_cross_entropy(hidden, model.lm_head.weight, tokens[:, 1:])
    loss.backward()
    torch.testing.assert_close(loss, theirs)
    for mine, peer in zip((p.grad for p in model.parameters()), wanted):
        torch.testing.assert_close(mine, peer, rtol=1e-4, atol=1e-6)
