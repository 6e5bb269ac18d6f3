// Little CMS converts colours only on Linux.
#if !canImport(ImageIO)
    import Foundation
    import ImprintCore
    import Testing

    @testable import ImprintImages
    @testable import ImprintSynthesis

    @Suite("Colour profiles") struct ColorProfileTests {
        private static let colors: [[UInt8]] = [
            [0, 0, 0], [255, 255, 255], [128, 128, 128], [200, 100, 50], [20, 180, 90], [60, 70, 220], [3, 2, 1],
        ]
        private static let image = RasterImage(
            width: colors.count, height: 1, channels: 3, samples: colors.flatMap(\.self))

        private static func light(_ value: Double) -> Double {
            value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
        }

        private static func sRGB(_ light: Double) -> UInt8 {
            let light = min(max(light, 0), 1)
            return UInt8((255 * (light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055)).rounded())
        }

        @Test("Display P3 is converted like its matrix to sRGB") func displayP3() throws {
            // Both have the white point D65, so there is no chromatic adaptation (CSS Color 4, 17.1).
            let matrix = [
                [1.2249401763, -0.2249401763, 0], [-0.0420569547, 1.0420569547, 0],
                [-0.0196375546, -0.0786360454, 1.0982736],
            ]
            let expected = Self.colors.flatMap { color in
                let lights = color.map { Self.light(Double($0) / 255) }
                return matrix.map { row in Self.sRGB(zip(row, lights).reduce(0) { $0 + $1.0 * $1.1 }) }
            }
            let profile = try #require(ColorProfile.of(.codePoints(primaries: 12, transfer: 13), model: .rgb))
            #expect(profile.problem == nil)
            #expect(largestDifference(profile.convert(Self.image).samples, expected) <= 2)
        }

        @Test("A gamma is inverted, in colour and in grey", arguments: [ColorModel.rgb, .grey], [1, 1.8, 2.6])
        func gamma(model: ColorModel, exponent: Double) throws {
            let expected = Self.image.samples.map { Self.sRGB(pow(Double($0) / 255, exponent)) }
            let profile = try #require(ColorProfile.of(.gamma(exponent, nil), model: model))
            #expect(largestDifference(profile.convert(Self.image).samples, expected) <= 1)
        }

        @Test("Alpha does not change") func alpha() throws {
            let profile = try #require(ColorProfile.of(.codePoints(primaries: 12, transfer: 13), model: .rgb))
            let image = RasterImage.noise(width: 9, height: 7, channels: 4)
            let converted = profile.convert(image)
            let opaque = RasterImage(
                width: 9, height: 7, channels: 3, samples: image.samples.enumerated().filter { $0.0 % 4 < 3 }.map(\.1))
            #expect(zip(image.samples, converted.samples).enumerated().allSatisfy { $0 % 4 < 3 || $1.0 == $1.1 })
            #expect(converted.samples.enumerated().filter { $0.0 % 4 < 3 }.map(\.1) == profile.convert(opaque).samples)
        }

        @Test(
            "Descriptions equivalent to sRGB change no sample",
            arguments: [
                .codePoints(primaries: 1, transfer: 13), .codePoints(primaries: 2, transfer: 2), .gamma(nil, .sRGB),
                .gamma(nil, nil),
            ] as [ColorDescription])
        func sameAsSRGB(description: ColorDescription) throws {
            let profile = try #require(ColorProfile.of(description, model: .rgb))
            let image = RasterImage.noise(width: 40, height: 40, channels: 3)
            #expect(profile.problem == nil && profile.convert(image) == image)
        }

        @Test(
            "Unusable descriptions are reported, and the samples do not change",
            arguments: [
                (.profile([]), "damaged"), (.profile([UInt8](repeating: 0, count: 200)), "damaged"),
                (.unusable("why"), "why"),
                (.codePoints(primaries: 99, transfer: 13), "99"),
                (.codePoints(primaries: 9, transfer: 16), "dynamic range"),
                (.codePoints(primaries: 1, transfer: 77), "77"), (.gamma(0, nil), "out of range"),
                (.gamma(.infinity, nil), "out of range"),
                (.gamma(nil, Chromaticities(white: (0, 0), red: (0, 0), green: (0, 0), blue: (0, 0))), "gamut"),
                (
                    .gamma(
                        nil, Chromaticities(white: (0.3, 0.3), red: (0.1, 0.1), green: (0.2, 0.2), blue: (0.3, 0.3))),
                    "gamut"
                ),
            ] as [(ColorDescription, String)])
        func unusable(description: ColorDescription, word: String) throws {
            let profile = try #require(ColorProfile.of(description, model: .rgb))
            #expect(profile.problem?.contains(word) == true, "\(profile.problem ?? "no problem")")
            #expect(profile.convert(Self.image) == Self.image)
            #expect(profile.convert(cmyk: [1, 2, 3, 4]) == nil)
        }

        @Test("A profile for another colour model is reported and not used") func otherModel() throws {
            let profile = try #require(ColorProfile.of(.codePoints(primaries: 12, transfer: 13), model: .cmyk))
            #expect(profile.problem != nil && profile.convert(cmyk: [1, 2, 3, 4]) == nil)
            #expect(ColorProfile.of(nil, model: .rgb) == nil)
        }

        @Test("Threads share a cached profile, even with more profiles than the cache holds") func threads() throws {
            let description = ColorDescription.gamma(1.5, nil)
            #expect(ColorProfile.of(description, model: .rgb) === ColorProfile.of(description, model: .rgb))
            let exponents = (0..<200).map { 1.2 + Double($0 / 2) / 100 }
            let converted = Workers(4).parallelMap(exponents.count) { index in
                ColorProfile.of(.gamma(exponents[index], nil), model: .rgb)?.convert(Self.image)
            }
            for (exponent, converted) in zip(exponents, converted) {
                let expected = Self.image.samples.map { Self.sRGB(pow(Double($0) / 255, exponent)) }
                #expect(largestDifference(try #require(converted).samples, expected) <= 1)
            }
        }
    }
#endif
