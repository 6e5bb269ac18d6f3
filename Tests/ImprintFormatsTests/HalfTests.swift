import Testing

@testable import ImprintFormats

@Suite struct HalfTests {
    @Test("Every float16 becomes a float32 and comes back")
    func everyHalf() {
        for bits in UInt16.min...UInt16.max {
            let value = Half.float(bits)
            if value.isNaN { continue }
            #expect(Half.bits(value) == bits)
        }
    }

    /// Values worked out from the definition: 10 fraction bits, exponents −14…15, subnormals in steps of 2⁻²⁴.
    @Test(
        "Rounding is to nearest, ties to even",
        arguments: [
            (1, 0x3C00), (-2, 0xC000), (65504, 0x7BFF), (0x1p-14, 0x0400), (0x1p-24, 0x0001), (-0.0, 0x8000),
            (1 + 0x1p-11, 0x3C00),  // half-way between 1 and the next: the even one is 1
            (1 + 0x3p-11, 0x3C02),  // half-way between the next and the one after: the even one is above
            (1 + 0x1.002p-11, 0x3C01),  // just over half-way
            (0x1p-25, 0x0000), (0x1.8p-24, 0x0002), (0x1p-30, 0x0000),
            (65519.996, 0x7BFF), (.infinity, 0x7C00), (-.infinity, 0xFC00),
        ] as [(Float, UInt16)])
    func rounding(value: Float, bits: UInt16) {
        #expect(Half.bits(value) == bits)
    }

    @Test("A finite number that float16 would make infinite has no bits", arguments: [65520, -65520, 1e30] as [Float])
    func overflow(value: Float) {
        #expect(Half.bits(value) == nil)
    }

    @Test("Not a number stays not a number")
    func notANumber() throws {
        let bits = try #require(Half.bits(.nan))
        #expect(Half.float(bits).isNaN)
    }
}
