"""Checkpoints of one small model, packed by the libraries that people use.

Each function of PACKERS takes the model's state dict and returns (packed state dict, configuration, unpacked weights):
the library's own numbers for each weight that it packed, as float32 numpy arrays."""

import json
import os

import numpy
import torch
from safetensors.torch import save_file

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256, "intermediate_size": 512,
          "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 512,
          "rms_norm_eps": 1e-5, "max_position_embeddings": 512, "tie_word_embeddings": False, "torch_dtype": "float16"}


def model():
    """The state dict before packing."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    return {name: tensor.to(torch.float16) for name, tensor in LlamaForCausalLM(LlamaConfig(**CONFIG)).state_dict().items()}


def linears(state):
    return [name for name in state if name.endswith("_proj.weight")]


def parameters(state):
    return sum(tensor.numel() for tensor in state.values())


def bitsandbytes_4bit(kind, nested):
    def pack(state):
        import bitsandbytes.functional as functional

        packed, plain = dict(state), {}
        for name in linears(state):
            codes, about = functional.quantize_4bit(state[name], blocksize=64, quant_type=kind, compress_statistics=nested)
            plain[name] = functional.dequantize_4bit(codes, about).float().numpy()
            packed[name] = codes
            packed |= {f"{name}.{key}": value for key, value in about.as_dict(packed=True).items()}
        return packed, {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": kind}}, plain

    return pack


def bitsandbytes_8bit(state):
    import bitsandbytes.functional as functional

    packed, plain = dict(state), {}
    for name in linears(state):
        codes, scales, _ = functional.int8_vectorwise_quant(state[name])
        plain[name] = functional.int8_vectorwise_dequant(codes, scales).float().numpy()
        packed[name] = codes
        packed[name.removesuffix("weight") + "SCB"] = scales
        packed[name.removesuffix("weight") + "weight_format"] = torch.tensor(0, dtype=torch.uint8)
    return packed, {"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}}, plain


def mlx(bits, group, mode="affine"):
    def pack(state):
        import mlx.core as mx

        packed, plain = dict(state), {}
        for name in linears(state):
            weight = mx.array(state[name].numpy())
            parts = mx.quantize(weight, group_size=group, bits=bits, mode=mode)
            whole = mx.dequantize(*parts, group_size=group, bits=bits, mode=mode)
            plain[name] = numpy.array(whole.astype(mx.float32))
            for ending, part in zip(("weight", "scales", "biases"), parts):
                packed[name.removesuffix("weight") + ending] = torch.from_numpy(numpy.array(part))
        about = {"group_size": group, "bits": bits} | ({} if mode == "affine" else {"mode": mode})
        return packed, {"quantization": about}, plain

    return pack


def compressed(form, **arguments):
    """compressed-tensors; `form` is its name of the layout."""

    def pack(state):
        from compressed_tensors.compressors import BaseCompressor
        from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
        from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam

        args = QuantizationArgs(**arguments)
        scheme = QuantizationScheme(targets=["Linear"], weights=args)
        compressor = BaseCompressor.get_value_from_registry(form)
        packed, plain = dict(state), {}
        for name in linears(state):
            weight = state[name].to(torch.bfloat16)
            group = arguments.get("group_size") or weight.shape[1]
            parts = weight.unflatten(1, (-1, group))
            local = {"weight": weight}
            if form == "nvfp4-pack-quantized":
                local["weight_global_scale"] = generate_gparam(weight.amin(), weight.amax())
            scale, zero = calculate_qparams(parts.amin(-1), parts.amax(-1), args, **(
                {"global_scale": local["weight_global_scale"]} if "weight_global_scale" in local else {}))
            local |= {"weight_scale": scale, "weight_zero_point": zero}
            done = compressor.compress(local, scheme)
            plain[name] = compressor.decompress(done, scheme)["weight"].float().numpy()
            del packed[name]
            packed |= {name.removesuffix("weight") + key: value for key, value in done.items()}
        about = {"quant_method": "compressed-tensors", "format": form,
                 "config_groups": {"group_0": json.loads(scheme.model_dump_json(exclude_none=True))}}
        return packed, {"quantization_config": about, "torch_dtype": "bfloat16"}, plain

    return pack


def fp8_blocks(state):
    """DeepSeek's: float8_e4m3fn with a scale for each 128 x 128 numbers. By definition; torch makes the numbers."""
    packed, plain = dict(state), {}
    for name in linears(state):
        rows, columns = state[name].shape
        blocks = state[name].float().unflatten(0, (-1, 128)).unflatten(2, (-1, 128))
        scales = blocks.abs().amax((1, 3)) / 448
        codes = (blocks / scales[:, None, :, None]).to(torch.float8_e4m3fn)
        plain[name] = (codes.float() * scales[:, None, :, None]).reshape(rows, columns).numpy()
        packed[name] = codes.reshape(rows, columns)
        packed[f"{name}_scale_inv"] = scales
    return packed, {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}, "torch_dtype": "bfloat16"}, plain


def modelopt_nvfp4(state):
    """nvidia-modelopt's NVFP4: scales of 16 numbers in float8, times one of the tensor."""
    from modelopt.torch.quantization.qtensor import NVFP4QTensor

    packed, plain = dict(state), {}
    for name in linears(state):
        weight = state[name].to(torch.bfloat16)
        tensor, scales, whole = NVFP4QTensor.quantize(weight, 16)
        plain[name] = tensor.dequantize(dtype=torch.float32, scale=scales, double_scale=whole, block_sizes={-1: 16}).numpy()
        base = name.removesuffix("weight")
        packed[name] = tensor._quantized_data
        packed |= {f"{base}weight_scale": scales, f"{base}weight_scale_2": whole, f"{base}input_scale": torch.tensor(1.0)}
    return packed, {"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}, "torch_dtype": "bfloat16"}, plain


def _words(codes, bits, order=None):
    """Codes [rows, n] in words of 32 bits along the rows."""
    per_word = 32 // bits
    order = order or range(per_word)
    groups = codes.reshape(codes.shape[0], -1, per_word).to(torch.int64)
    words = sum(groups[:, :, source] << (bits * place) for place, source in enumerate(order))
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)


def _affine(weight, group, bits):
    """(codes [O, I], scales [O, G], zeros [O, G]) of rows in groups."""
    parts = weight.float().unflatten(1, (-1, group))
    low, high = parts.amin(-1).clamp(max=0), parts.amax(-1).clamp(min=0)
    scales = ((high - low) / (2**bits - 1)).to(torch.float16)
    zeros = (-low / scales).round().clamp(1, 2**bits - 1)
    codes = (parts / scales[..., None] + zeros[..., None]).round().clamp(0, 2**bits - 1)
    return codes.flatten(1).to(torch.int64), scales, zeros.to(torch.int64)


def gptq(bits, group, act_order=False):
    """AutoGPTQ's layout, by definition: codes of each output run down the inputs, zeros are stored less one."""

    def pack(state):
        packed, plain = dict(state), {}
        for name in linears(state):
            weight = state[name]
            inputs = weight.shape[1]
            groups = torch.arange(inputs) // group
            order = torch.randperm(inputs) if act_order else torch.arange(inputs)
            codes, scales, zeros = _affine(weight[:, order], group, bits)
            place = torch.empty_like(order)
            place[order] = torch.arange(inputs)
            codes, groups = codes[:, place], groups[place]
            plain[name] = ((codes - zeros[:, groups]) * scales[:, groups].float()).numpy()
            base = name.removesuffix("weight")
            del packed[name]
            packed |= {f"{base}qweight": _words(codes, bits).T.contiguous(), f"{base}scales": scales.T.contiguous(),
                       f"{base}qzeros": _words((zeros - 1).T.contiguous(), bits), f"{base}g_idx": groups.to(torch.int32)}
        return packed, {"quantization_config": {"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": act_order}}, plain

    return pack


def awq(group):
    """AutoAWQ's layout, by definition: codes of each input run along the outputs, interleaved."""

    def pack(state):
        packed, plain = dict(state), {}
        order = (0, 2, 4, 6, 1, 3, 5, 7)
        for name in linears(state):
            codes, scales, zeros = _affine(state[name], group, 4)
            groups = torch.arange(codes.shape[1]) // group
            plain[name] = ((codes - zeros[:, groups]) * scales[:, groups].float()).numpy()
            base = name.removesuffix("weight")
            del packed[name]
            packed |= {f"{base}qweight": _words(codes.T.contiguous(), 4, order), f"{base}scales": scales.T.contiguous(),
                       f"{base}qzeros": _words(zeros.T.contiguous(), 4, order)}
        return packed, {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": group, "version": "gemm"}}, plain

    return pack


PACKERS = {
    "bitsandbytes-nf4": bitsandbytes_4bit("nf4", False),
    "bitsandbytes-nf4-nested": bitsandbytes_4bit("nf4", True),
    "bitsandbytes-fp4": bitsandbytes_4bit("fp4", False),
    "bitsandbytes-int8": bitsandbytes_8bit,
    "mlx-2": mlx(2, 64),
    "mlx-3": mlx(3, 64),
    "mlx-4": mlx(4, 64),
    "mlx-4-32": mlx(4, 32),
    "mlx-5": mlx(5, 64),
    "mlx-6": mlx(6, 64),
    "mlx-8": mlx(8, 64),
    "mlx-mxfp4": mlx(4, 32, "mxfp4"),
    "mlx-nvfp4": mlx(4, 16, "nvfp4"),
    "mlx-mxfp8": mlx(8, 32, "mxfp8"),
    "compressed-int4": compressed("pack-quantized", num_bits=4, type="int", strategy="group", group_size=128, symmetric=True),
    "compressed-int4-zeros": compressed("pack-quantized", num_bits=4, type="int", strategy="group", group_size=32, symmetric=False),
    "compressed-int8": compressed("int-quantized", num_bits=8, type="int", strategy="channel", symmetric=True),
    "compressed-fp8": compressed("float-quantized", num_bits=8, type="float", strategy="channel", symmetric=True),
    "compressed-nvfp4": compressed("nvfp4-pack-quantized", num_bits=4, type="float", strategy="tensor_group", group_size=16, symmetric=True),
    "compressed-mxfp4": compressed("mxfp4-pack-quantized", num_bits=4, type="float", strategy="group", group_size=32, symmetric=True),
    "modelopt-nvfp4": modelopt_nvfp4,
    "fp8-blocks": fp8_blocks,
    "gptq-4": gptq(4, 128),
    "gptq-8": gptq(8, 64),
    "gptq-4-act-order": gptq(4, 64, act_order=True),
    "awq-4": awq(128),
}


def rounded_to(name):
    """The type to which the library rounds what it unpacks; empty: float32."""
    if name.startswith(("bitsandbytes-nf4", "bitsandbytes-fp4", "mlx")):
        return "f16"
    return "bf16" if name.startswith("compressed") else ""


def difference(told, numbers):
    """For messages: how many numbers differ, and by how much."""
    mine = torch.frombuffer(bytearray(told), dtype=numbers.dtype).reshape(numbers.shape)
    apart = (mine.double() - numbers.double()).abs()
    return f"{int((apart > 0).sum())} of {numbers.numel()} differ, by at most {apart.max().item()}"


def save(folder, name):
    """Packs the model into FOLDER/NAME; returns (path, parameters, unpacked weights)."""
    state = model()
    packed, about, plain = PACKERS[name](state)
    path = os.path.join(folder, name)
    os.makedirs(path, exist_ok=True)
    save_file({key: value.contiguous() for key, value in packed.items()}, os.path.join(path, "model.safetensors"), {"format": "pt"})
    with open(os.path.join(path, "config.json"), "w") as file:
        json.dump(CONFIG | about, file, indent=2)
    return path, parameters(state), plain
