import Foundation
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite("Colour map") struct ColorMapTests {
    private func mapped(_ color: [UInt8], _ map: ColorMap) -> [UInt8] {
        RasterImage(width: 1, height: 1, channels: color.count, samples: color).warped(by: ProjectiveMap(), colors: map)
            .samples
    }

    @Test("The identity does not change colours", arguments: [[7], [1, 200, 255], [0, 99, 255, 3]] as [[UInt8]])
    func identity(color: [UInt8]) {
        #expect(ColorMap().isIdentity)
        #expect(ColorMap().contrasted(by: 1).saturated(by: 1).isIdentity)
        #expect(mapped(color, ColorMap()) == color)
    }

    @Test("Contrast moves samples away from mid grey, and clamps at black and white") func contrast() {
        #expect(mapped([127, 100, 200], ColorMap().contrasted(by: 1.4)) == [127, 89, 229])
        #expect(mapped([0, 20, 255], ColorMap().contrasted(by: 1.4)) == [0, 0, 255])
        #expect(mapped([0, 127, 255], ColorMap().contrasted(by: 0.5)) == [64, 127, 191])
    }

    @Test("A saturation of 0 gives the luma, and of 2 twice the distance from it") func saturation() {
        #expect(mapped([255, 0, 0], ColorMap().saturated(by: 0)) == [76, 76, 76])
        #expect(mapped([0, 255, 0], ColorMap().saturated(by: 0)) == [150, 150, 150])
        // The luma of this colour is 100 · 0.299 + 120 · 0.587 + 140 · 0.114 = 116.3.
        #expect(mapped([100, 120, 140], ColorMap().saturated(by: 2)) == [84, 124, 164])
    }

    @Test("A hue rotation by 120° maps red to green, green to blue and blue to red") func hue() {
        let map = ColorMap().hueRotated(by: 2 * .pi / 3)
        #expect(mapped([200, 10, 30], map) == [30, 200, 10])
        let small = mapped([200, 50, 50], ColorMap().hueRotated(by: 15 * .pi / 180))
        #expect(small[1] > small[2])
    }

    @Test("Hue and saturation do not change greys, and grey images give the same values")
    func greys() {
        let map = ColorMap(gain: 1.2).hueRotated(by: 0.3).saturated(by: 1.4).contrasted(by: 0.8)
        for value in [0, 50, 128, 180] as [UInt8] {
            let color = mapped([value, value, value], map)
            #expect(Set(color).count == 1)
            #expect(mapped([value], map) == [color[0]])
        }
    }

    @Test("Steps apply in order: saturation does not change the constant of contrast") func order() {
        let map = ColorMap().contrasted(by: 0.5).saturated(by: 0)
        #expect(mapped([255, 0, 0], map) == [102, 102, 102])
    }

    @Test("Alpha does not change") func alpha() {
        let map = ColorMap(gain: 0.5).saturated(by: 0.3).contrasted(by: 0.8)
        for alpha in [0, 77, 255] as [UInt8] { #expect(mapped([255, 20, 0, alpha], map)[3] == alpha) }
    }
}
