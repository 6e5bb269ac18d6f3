internal import Foundation

/// An affine colour transform: each output channel is a weighted sum of the input channels, plus a constant.
struct ColorMap: Equatable {
    /// The contribution of a sample of 1 to red, green and blue.
    private var red = SIMD3<Float>(1, 0, 0)
    private var green = SIMD3<Float>(0, 1, 0)
    private var blue = SIMD3<Float>(0, 0, 1)
    private var constant = SIMD3<Float>.zero

    init() {}

    /// Creates a map that multiplies all samples by `gain`.
    init(gain: Float) { self = ColorMap().multiplied(by: gain) }

    var isIdentity: Bool { self == ColorMap() }

    /// Brightens or darkens by a factor.
    func multiplied(by gain: Float) -> ColorMap { followed { $0 * gain } }

    /// Changes the contrast around mid grey.
    func contrasted(by factor: Float) -> ColorMap {
        var map = followed { $0 * factor }
        map.constant += 127.5 * (1 - factor)
        return map
    }

    /// Changes the saturation around the luma of Rec 601.
    func saturated(by factor: Float) -> ColorMap {
        followed { color in
            let luma = (color * SIMD3(0.299, 0.587, 0.114)).sum()
            return SIMD3(repeating: luma) + factor * (color - luma)
        }
    }

    /// Rotates the hue by `angle` radians about the grey axis, red towards green (Rodrigues' formula).
    func hueRotated(by angle: Float) -> ColorMap {
        followed { color in
            let mean = SIMD3(repeating: color.sum() / 3)
            let across = SIMD3(color.z - color.y, color.x - color.z, color.y - color.x) / Float(3).squareRoot()
            return mean + cosf(angle) * (color - mean) + sinf(angle) * across
        }
    }

    /// Applies another linear step.
    private func followed(by step: (SIMD3<Float>) -> SIMD3<Float>) -> ColorMap {
        var map = self
        map.red = step(red)
        map.green = step(green)
        map.blue = step(blue)
        map.constant = step(constant)
        return map
    }

    /// Returns the contribution of each of the four samples of a pixel to each output, and the constants.
    ///
    /// An image of 1 channel is treated as a colour image of three equal samples, and so is the result. Alpha does not change.
    func contributions(channels: Int) -> [Float] {
        func column(_ color: SIMD3<Float>, alpha: Float = 0) -> [Float] { [color.x, color.y, color.z, alpha] }
        let colors = channels == 1 ? [red + green + blue, .zero, .zero] : [red, green, blue]
        return colors.flatMap { column($0) } + column(.zero, alpha: 1) + column(constant)
    }
}
