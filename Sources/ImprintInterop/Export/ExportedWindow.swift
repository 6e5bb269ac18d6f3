internal import ImprintNetwork

/// The padding of a convolution or pooling layer in a format that rounds the output size down.
///
/// The output size in such a format is floor((input + padding − kernel) / stride) + 1.
struct ExportedWindow {
    /// The number of pixels on each side.
    struct Sides: Equatable {
        var top = 0
        var left = 0
        var bottom = 0
        var right = 0

        var isEmpty: Bool { self == Sides() }
    }

    /// The padding including the pixels that windows read beyond the declared padding.
    let effectivePadding: Sides
    /// The padding of the layer, which average pooling includes if it counts padding.
    let declaredPadding: Sides

    /// The rows and columns at the end of the image that no window covers.
    let uncovered: Size2D

    /// The part of `effectivePadding` beyond `declaredPadding`.
    var extraPadding: Sides {
        Sides(
            top: 0, left: 0, bottom: effectivePadding.bottom - declaredPadding.bottom,
            right: effectivePadding.right - declaredPadding.right)
    }

    /// Computes the padding of a layer that maps an image of the shape `input` to the shape `output`.
    init(
        kernel: Size2D, stride: Size2D, dilation: Size2D = 1, padding: Padding, over input: TensorShape,
        to output: TensorShape
    ) {
        func reach(_ outputs: Int, _ stride: Int, _ kernel: Int, _ dilation: Int) -> Int {
            (outputs - 1) * stride + (kernel - 1) * dilation + 1
        }
        let rows = reach(output.height, stride.height, kernel.height, dilation.height)
        let columns = reach(output.width, stride.width, kernel.width, dilation.width)
        switch padding {
        case .valid: declaredPadding = Sides()
        case .same:
            let (vertical, horizontal) = (max(rows - input.height, 0), max(columns - input.width, 0))
            declaredPadding = Sides(
                top: vertical / 2, left: horizontal / 2, bottom: vertical - vertical / 2,
                right: horizontal - horizontal / 2)
        case .explicit(let top, let left, let bottom, let right):
            declaredPadding = Sides(top: top, left: left, bottom: bottom, right: right)
        }
        effectivePadding = Sides(
            top: declaredPadding.top, left: declaredPadding.left,
            bottom: max(declaredPadding.bottom, rows - input.height - declaredPadding.top),
            right: max(declaredPadding.right, columns - input.width - declaredPadding.left))
        uncovered = Size2D(
            height: max(input.height + declaredPadding.top + declaredPadding.bottom - rows, 0),
            width: max(input.width + declaredPadding.left + declaredPadding.right - columns, 0))
    }
}
