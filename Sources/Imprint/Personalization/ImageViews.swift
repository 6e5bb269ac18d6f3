internal import ImprintCore
internal import ImprintImages

/// A photo and augmented copies of it, so that personalization learns from a few photos as from more.
struct ImageViews: Hashable, Sendable {
    /// The number of views, the photo itself included.
    var count: Int

    /// Only augmentations that keep a logo readable and inside the picture: no flips, no erasing.
    private static let augmentation = Augmentation([.crop, .exposure, .color])

    /// The views of an image that has the size of the network's input.
    ///
    /// Equal images have equal views.
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
