import CImprintKernels
import Foundation
import Testing

/// Compares the conversion between float32 and float16 with the definition of IEEE 754 binary16: 10 fraction bits,
/// exponents −14…15, subnormals in steps of 2⁻²⁴.
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

    /// Returns the value of a float16 that is not NaN.
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

    @Test("Converting every float16 to float32 and back is exact")
    func everyHalf() {
        let halves = Array(UInt16.min...UInt16.max)
        let values = widened(halves)
        let (restored, overflows) = narrowed(values)
        #expect(overflows == 0)
        for half in halves {
            let (found, back) = (values[Int(half)], restored[Int(half)])
            if isNaN(half) {
                #expect(found.isNaN && isNaN(back) && back >> 15 == half >> 15, "\(half) gives \(found), \(back)")
            } else if found.bitPattern != value(half).bitPattern || back != half {
                Issue.record("\(half) gives \(found), expected \(value(half)); and then \(back)")
            }
        }
    }

    @Test(
        "Rounding is to nearest, ties to even",
        arguments: [
            (1, 0x3C00), (-2, 0xC000), (65504, 0x7BFF), (0x1p-14, 0x0400), (0x1p-24, 0x0001), (-0.0, 0x8000),
            (1 + 0x1p-11, 0x3C00),  // halfway between 0x3C00 and 0x3C01
            (1 + 0x3p-11, 0x3C02),  // halfway between 0x3C01 and 0x3C02
            (1 + 0x1.002p-11, 0x3C01),  // just above halfway
            (0x1p-25, 0x0000), (0x1.8p-24, 0x0002), (0x1p-30, 0x0000), (-0x1p-149, 0x8000),
            (0x1.ffep-15, 0x0400),  // halfway between the largest subnormal and the smallest normal number
            (65519.996, 0x7BFF), (.infinity, 0x7C00), (-.infinity, 0xFC00),
        ] as [(Float, UInt16)])
    func rounding(value: Float, half: UInt16) {
        #expect(narrowed([value]) == ([half], 0))
    }

    @Test("Values between two adjacent float16 round to the nearer, and a tie to the even one")
    func neighbours() {
        for half in UInt16(0)..<0x7BFF {
            // A float32 represents the middle exactly.
            let middle = (value(half) + value(half + 1)) / 2
            let even = half & 1 == 0 ? half : half + 1
            for sign: UInt16 in [0, 0x8000] {
                let values = [middle.nextDown, middle, middle.nextUp].map { sign == 0 ? $0 : -$0 }
                let found = narrowed(values).halves
                let expected = [half | sign, even | sign, (half + 1) | sign]
                if found != expected { Issue.record("\(values) give \(found), expected \(expected)") }
            }
        }
    }

    @Test("Finite values that become infinite are counted", arguments: [65520, -65520, 65536, 1e30] as [Float])
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
        "NaN stays NaN", arguments: [0x7F80_0001, 0x7FC0_0000, 0xFFFF_FFFF, 0xFF80_2000] as [UInt32])
    func nan(bits: UInt32) {
        let (halves, overflows) = narrowed([Float(bitPattern: bits)])
        #expect(halves.allSatisfy(isNaN) && halves[0] >> 15 == UInt16(bits >> 31) && overflows == 0)
    }

    @Test("Any count is converted, and elements after it do not change", arguments: 0...70)
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
