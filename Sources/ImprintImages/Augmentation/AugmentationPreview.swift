/// Shows what a network sees of some images: each prepared, and as each epoch varies it.
package struct AugmentationPreview: Sendable {
    /// A contact sheet, and what is on it.
    package struct Sheet: Sendable {
        /// A row per image: prepared, and after a gap as the epochs vary it.
        package let image: RasterImage
        /// The images that are shown, from the top.
        package let shown: [ImageFolder.Item]
        /// Those that cannot be read.
        package let skipped: [SkippedImage]
    }

    private let preprocessing: Preprocessing
    private let augmentation: Augmentation
    private let seed: UInt64
    private let epochs: Int

    /// Makes a preview of the first `epochs` epochs (at least one) of training with that seed.
    package init(preprocessing: Preprocessing, augmentation: Augmentation, seed: UInt64, epochs: Int) {
        precondition(epochs >= 1, "a preview shows at least one epoch, not \(epochs)")
        self.preprocessing = preprocessing
        self.augmentation = augmentation
        self.seed = seed
        self.epochs = epochs
    }

    /// Shows up to `count` (at least one) of `items`, spread evenly over them; small images are shown enlarged.
    ///
    /// Variations are those of training on all of the items.
    /// - Throws: `ImageError` if none of those to be shown can be read.
    package func sheet(of items: [ImageFolder.Item], count: Int) throws(ImageError) -> Sheet {
        precondition(!items.isEmpty && count >= 1, "a preview shows at least one image")
        let rows = min(count, items.count)
        // The middle of each of so many equal parts.
        let places = (0..<rows).map { (2 * $0 + 1) * items.count / (2 * rows) }
        var images: [RasterImage] = []
        var shown: [ImageFolder.Item] = []
        var skipped: [SkippedImage] = []
        for place in places {
            let item = items[place]
            do throws(ImageError) {
                images += try row(for: preprocessing.prepare(item.url), place: place)
                shown.append(item)
            } catch {
                skipped.append(SkippedImage(url: item.url, reason: error))
            }
        }
        if shown.isEmpty, let first = skipped.first { throw first.reason }
        let sheet = ContactSheet.make(images, columns: epochs + 1, gapAfterFirstColumn: 12)
        return Sheet(image: sheet, shown: shown, skipped: skipped)
    }

    private func row(for image: RasterImage, place: Int) throws(ImageError) -> [RasterImage] {
        let smallestSide = 64
        let factor = max((smallestSide - 1) / max(image.width, image.height) + 1, 1)
        var row = [image.enlarged(by: factor)]
        for epoch in 0..<epochs {
            row.append(try augmentation.variation(of: image, at: place, epoch: epoch, seed: seed).enlarged(by: factor))
        }
        return row
    }
}

extension RasterImage {
    /// The image with every pixel made into a square of `factor` x `factor`.
    fileprivate func enlarged(by factor: Int) -> RasterImage {
        guard factor > 1 else { return self }
        var larger = RasterImage(width: width * factor, height: height * factor, channels: channels)
        for y in 0..<larger.height {
            for x in 0..<larger.width {
                let (source, target) = ((y / factor * width + x / factor) * channels, (y * larger.width + x) * channels)
                for channel in 0..<channels { larger.samples[target + channel] = samples[source + channel] }
            }
        }
        return larger
    }
}
