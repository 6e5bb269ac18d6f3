/// Shows some images as the network sees them: preprocessed, and augmented in each epoch.
package struct AugmentationPreview: Sendable {
    /// A contact sheet and the images on it.
    package struct Sheet: Sendable {
        /// One row per image: the preprocessed image, a gap, and the augmented images of the epochs.
        package let image: RasterImage
        /// The images on the sheet, from the top.
        package let shown: [TrainingPhoto]
        /// The images that cannot be read.
        package let skipped: [SkippedImage]
    }

    private let preprocessing: Preprocessing
    private let augmentation: Augmentation
    private let seed: UInt64
    private let epochs: Int

    /// Creates a preview of the first `epochs` epochs (at least one) of training with that seed.
    package init(preprocessing: Preprocessing, augmentation: Augmentation, seed: UInt64, epochs: Int) {
        precondition(epochs >= 1, "a preview must show at least one epoch, not \(epochs)")
        self.preprocessing = preprocessing
        self.augmentation = augmentation
        self.seed = seed
        self.epochs = epochs
    }

    /// Shows up to `count` (at least one) of `items`, spread evenly over them; small images are shown enlarged.
    ///
    /// The augmented images are those that training on all of the items uses.
    /// - Throws: `ImageError` if none of the chosen images can be read.
    package func sheet(of items: [TrainingPhoto], count: Int) throws(ImageError) -> Sheet {
        precondition(!items.isEmpty && count >= 1, "a preview must show at least one image")
        let rows = min(count, items.count)
        // The middle of each of `rows` equal parts.
        let indices = (0..<rows).map { (2 * $0 + 1) * items.count / (2 * rows) }
        var images: [RasterImage] = []
        var shown: [TrainingPhoto] = []
        var skipped: [SkippedImage] = []
        for index in indices {
            let item = items[index]
            do throws(ImageError) {
                images += try row(for: preprocessing.prepare(item), index: index)
                shown.append(item)
            } catch {
                skipped.append(SkippedImage(url: item.url, reason: error))
            }
        }
        if shown.isEmpty, let first = skipped.first { throw first.reason }
        let sheet = ContactSheet.make(images, columns: epochs + 1, gapAfterFirstColumn: 12)
        return Sheet(image: sheet, shown: shown, skipped: skipped)
    }

    private func row(for image: RasterImage, index: Int) throws(ImageError) -> [RasterImage] {
        let smallestSide = 64
        let factor = max((smallestSide - 1) / max(image.width, image.height) + 1, 1)
        var row = [image.enlarged(by: factor)]
        for epoch in 0..<epochs {
            row.append(try augmentation.augmented(image, at: index, epoch: epoch, seed: seed).enlarged(by: factor))
        }
        return row
    }
}

extension RasterImage {
    /// Returns the image with every pixel made into a square of `factor` x `factor`.
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
