import CImprintKernels
import Foundation
import Testing

/// Conversion between float32 and float16 (IEEE 754 binary16), against the definition: 10 fraction bits, exponents
/// −14…15, subnormals in steps of 2⁻²⁴.
@Suite struct Float16KernelTests {
    private func widened(_ halves: [UInt16]) -> [Float] {
        var values = [Float](repeating: .pi, count: halves.count)
        imprint_float16_to_float32(halves, &values, halves.count)
        return values
    }

    private func narrowed(_ values: [Float]) -> (halves: [UInt16], overflows: Int) {
        var halves = [UInt16](repeating: 0xAAAA, count: values.count)
        let overflows = imprint_float32_to_float16(values, &halves, values.count)
        return (halves, overflows)
    }

    /// The value of a float16 that is a number.
    private func value(_ half: UInt16) -> Float {
        let (exponent, fraction) = (Int(half >> 10 & 31), Float(half & 0x3FF))
        let magnitude =
            switch exponent {
            case 0: fraction * 0x1p-24
            case 31: Float.infinity
            default: (1024 + fraction) * Float(sign: .plus, exponent: exponent - 25, significand: 1)
            }
        return half >> 15 == 0 ? magnitude : -magnitude
    }

    private func isNaN(_ half: UInt16) -> Bool { half & 0x7FFF > 0x7C00 }

    @Test("Every float16 becomes the same float32 and comes back")
    func everyHalf() {
        let halves = Array(UInt16.min...UInt16.max)
        let values = widened(halves)
        let (back, overflows) = narrowed(values)
        #expect(overflows == 0)
        for half in halves {
            let (found, back) = (values[Int(half)], back[Int(half)])
            if isNaN(half) {
                #expect(found.isNaN && isNaN(back) && back >> 15 == half >> 15, "\(half) gives \(found), \(back)")
            } else if found.bitPattern != value(half).bitPattern || back != half {
                Issue.record("\(half) gives \(found) and not \(value(half)), and then \(back)")
            }
        }
    }

    @Test(
        "Rounding is to nearest, ties to even",
        arguments: [
            (1, 0x3C00), (-2, 0xC000), (65504, 0x7BFF), (0x1p-14, 0x0400), (0x1p-24, 0x0001), (-0.0, 0x8000),
            (1 + 0x1p-11, 0x3C00),  // half-way between 1 and the next: the even one is 1
            (1 + 0x3p-11, 0x3C02),  // half-way between the next and the one after: the even one is above
            (1 + 0x1.002p-11, 0x3C01),  // just over half-way
            (0x1p-25, 0x0000), (0x1.8p-24, 0x0002), (0x1p-30, 0x0000), (-0x1p-149, 0x8000),
            (0x1.ffep-15, 0x0400),  // half-way between the greatest subnormal and the least normal number
            (65519.996, 0x7BFF), (.infinity, 0x7C00), (-.infinity, 0xFC00),
        ] as [(Float, UInt16)])
    func rounding(value: Float, half: UInt16) {
        #expect(narrowed([value]) == ([half], 0))
    }

    @Test("Between two neighbours the nearer one is chosen, and the even one of two as near")
    func neighbours() {
        for half in UInt16(0)..<0x7BFF {
            // A float holds the middle and much closer ones.
            let middle = (value(half) + value(half + 1)) / 2
            let even = half & 1 == 0 ? half : half + 1
            for sign: UInt16 in [0, 0x8000] {
                let values = [middle.nextDown, middle, middle.nextUp].map { sign == 0 ? $0 : -$0 }
                let found = narrowed(values).halves
                let wanted = [half | sign, even | sign, (half + 1) | sign]
                if found != wanted { Issue.record("\(values) give \(found) and not \(wanted)") }
            }
        }
    }

    @Test("A finite number that float16 makes infinite is counted", arguments: [65520, -65520, 65536, 1e30] as [Float])
    func overflow(value: Float) {
        for count in [1, 16, 67] {
            var values = [Float](repeating: 1, count: count)
            values[count / 2] = value
            values[count - 1] = value
            values[0] = -.infinity
            let (halves, overflows) = narrowed(values)
            #expect(overflows == values.count { $0 == value })
            #expect(halves.last == (count == 1 ? 0xFC00 : value < 0 ? 0xFC00 : 0x7C00))
        }
    }

    @Test(
        "Not a number stays not a number", arguments: [0x7F80_0001, 0x7FC0_0000, 0xFFFF_FFFF, 0xFF80_2000] as [UInt32])
    func notANumber(bits: UInt32) {
        let (halves, overflows) = narrowed([Float(bitPattern: bits)])
        #expect(halves.allSatisfy(isNaN) && halves[0] >> 15 == UInt16(bits >> 31) && overflows == 0)
    }

    @Test("Any count is converted, and nothing beyond it", arguments: 0...70)
    func counts(count: Int) {
        let halves = (0..<count + 1).map { UInt16($0 * 331) }
        var values = [Float](repeating: .pi, count: count + 1)
        imprint_float16_to_float32(halves, &values, count)
        #expect(values.dropLast().map(\.bitPattern) == halves.dropLast().map { value($0).bitPattern })
        #expect(values.last == .pi)
        var back = [UInt16](repeating: 0xAAAA, count: count + 1)
        imprint_float32_to_float16(values, &back, count)
        #expect(back.dropLast() == halves.dropLast() && back.last == 0xAAAA)
    }
}
