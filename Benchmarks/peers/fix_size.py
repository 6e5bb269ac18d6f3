"""fix_size.py FILE HEIGHT WIDTH sets the height and width of the input of an ONNX file in place."""

import sys

from measure import missing


def main(file, height, width):
    import onnx

    model = onnx.load(file)
    lengths = {"height": int(height), "width": int(width)}
    for dimension in model.graph.input[0].type.tensor_type.shape.dim:
        if dimension.dim_param in lengths:
            dimension.dim_value = lengths[dimension.dim_param]
    onnx.save(model, file)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except ModuleNotFoundError as error:
        missing(error)
