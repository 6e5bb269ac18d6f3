internal import CImprintKernels
internal import Foundation
package import ImprintCore

/// The photometric augmentation of a patch: lookup tables for the colours, then blur and noise.
package struct PatchJitter {
    /// The lookup table of each channel, channel by channel.
    private let tables: [UInt8]
    /// The source channel of each channel.
    private let order: [Int32]
    /// The blend towards grey, 0…1.
    private let grey: Float
    private let blurs: Bool
    private let noise: (standardDeviation: Float, key: UInt64)?

    /// Creates an augmentation with random values.
    package init(_ random: inout RandomStream) {
        let gamma = expf(0.2 * random.normal())
        let contrast = expf(0.25 * random.normal())
        let brightness = random.uniform(in: -16...16)
        let gains = (0..<3).map { _ in expf(0.08 * random.normal()) }
        grey = random.chance(0.12) ? random.uniform(in: 0.5...1) : 0
        order = random.chance(0.18) ? random.permutation(of: 3).map(Int32.init) : [0, 1, 2]
        let inverts = random.chance(0.06)
        blurs = random.chance(0.1)
        noise = random.chance(0.1) ? (random.uniform(in: 2...12), random.next()) : nil
        tables = gains.flatMap { gain in
            (0..<256).map { sample in
                let value = gain * ((255 * powf(Float(sample) / 255, gamma) - 128) * contrast + 128 + brightness)
                return UInt8(min(max(inverts ? 255 - value : value, 0), 255))
            }
        }
    }

    /// Augments a patch of `side` x `side` pixels with 3 channels.
    package func change(_ patch: UnsafeMutableBufferPointer<UInt8>, side: Int) {
        imprint_recolor_patch(patch.baseAddress, side * side, tables, order, grey)
        guard blurs || noise != nil else { return }
        var image = RasterImage(width: side, height: side, channels: 3, samples: Array(patch))
        if blurs { image = image.blurred(standardDeviation: 0.8) }
        if let noise { image = image.noisy(standardDeviation: noise.standardDeviation, key: noise.key) }
        _ = patch.update(fromContentsOf: image.samples)
    }
}
