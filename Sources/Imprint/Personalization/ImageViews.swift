internal import ImprintCore
internal import ImprintImages

/// The views of a training photo: the photo itself and augmented copies of it.
struct ImageViews: Hashable, Sendable {
    /// The number of views, including the photo itself.
    var count: Int

    /// The augmentations: only those that keep a logo legible and inside the image, so no flips.
    private static let augmentation = Augmentation([.crop, .exposure, .color])

    /// Returns the views of an image of the network's input size; equal images have equal views.
    func of(_ image: RasterImage) throws -> [RasterImage] {
        // FNV-1a: the random stream only has to differ from image to image.
        let seed = image.samples.reduce(UInt64(0xcbf2_9ce4_8422_2325)) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        return try [image]
            + (1..<max(count, 1)).map { view in
                var stream = RandomStream(seed: seed, "view", view)
                return try Self.augmentation.apply(to: image, using: &stream)
            }
    }
}
