"""fix_size.py FILE HEIGHT WIDTH sets the height and width of the input of an ONNX file in place."""

import sys

from measure import missing


def main(file, height, width):
    import onnx
    from onnxruntime.tools.onnx_model_utils import make_dim_param_fixed

    model = onnx.load(file)
    for name, length in (("height", height), ("width", width)):
        make_dim_param_fixed(model.graph, name, int(length))
    onnx.save(model, file)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except ModuleNotFoundError as error:
        missing(error)
