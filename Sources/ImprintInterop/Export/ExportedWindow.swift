internal import ImprintNetwork

/// The borders of a convolution or pool as formats state them whose windows must end within the border: floor((input + border −
/// kernel) / stride) + 1.
struct ExportedWindow {
    /// So many pixels on each side.
    struct Sides: Equatable {
        var top = 0
        var left = 0
        var bottom = 0
        var right = 0

        var isEmpty: Bool { self == Sides() }
    }

    /// The border around the image, where windows that reach beyond its end have theirs made longer.
    let border: Sides
    /// The border that the layer states: what counts in a mean with its border.
    let stated: Sides

    /// The rows and columns at the end of the image that no window covers.
    let rest: Size2D

    /// The part of `border` beyond `stated`.
    var beyond: Sides {
        Sides(top: 0, left: 0, bottom: border.bottom - stated.bottom, right: border.right - stated.right)
    }

    /// The window with which a layer makes an image of the shape `output` of one of the shape `input`.
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
        case .valid: stated = Sides()
        case .same:
            let (vertical, horizontal) = (max(rows - input.height, 0), max(columns - input.width, 0))
            stated = Sides(
                top: vertical / 2, left: horizontal / 2, bottom: vertical - vertical / 2,
                right: horizontal - horizontal / 2)
        case .explicit(let top, let left, let bottom, let right):
            stated = Sides(top: top, left: left, bottom: bottom, right: right)
        }
        border = Sides(
            top: stated.top, left: stated.left, bottom: max(stated.bottom, rows - input.height - stated.top),
            right: max(stated.right, columns - input.width - stated.left))
        rest = Size2D(
            height: max(input.height + stated.top + stated.bottom - rows, 0),
            width: max(input.width + stated.left + stated.right - columns, 0))
    }
}
