package import ImprintCore
package import ImprintImages

/// The backgrounds of composites: random crops of photos, and drawn patterns if there are few photos or none.
package final class Backdrops: Sendable {
    /// The unreadable photos.
    package let skipped: [SkippedImage]
    /// The number of photos.
    package var count: Int { photos.count }

    /// The number of photos from which all backgrounds are photos; with n fewer ones, a share of 1 − n / 20 are drawn patterns, because a detector
    /// that sees its logo only in front of a few photos does not find it elsewhere.
    private static let sufficientPhotoCount = 20
    private let photos: [RasterImage]
    /// The height and width of the composites, in pixels.
    let size: Int

    /// Creates backgrounds, and reads the photos into memory, scaled to a short side of at most 1.5 times `size`.
    ///
    /// - Parameters:
    ///   - photos: The photos, whose labels do not matter; with fewer than 20, some backgrounds are drawn patterns. They should not
    ///     show the logo.
    ///   - size: The height and width of the composites, in pixels.
    ///   - byteLimit: The approximate maximum memory of the photos, in bytes. Reading stops there, after a random part of the
    ///     photos.
    ///   - seed: The random seed of that choice.
    ///   - workers: The threads that read the photos. With several processes, each reads all photos, and all skip the same ones.
    ///   - onRead: Receives the number of photos read so far, from time to time.
    ///   - loadedPhoto: Returns the photo at an index of `photos` if the caller has it in memory, else nil. Such a photo is not read
    ///     again. Called on any thread.
    /// - Throws: `ImageError.tooManyUnreadable` if more than half of the photos cannot be read.
    package init(
        _ photos: [TrainingPhoto], size: Int, byteLimit: Int = 256 << 20, seed: UInt64 = 0, workers: Workers,
        onRead: (Int) -> Void = { _ in }, inMemory loadedPhoto: (_ index: Int) -> RasterImage? = { _ in nil }
    ) throws(ImageError) {
        precondition((16...1024).contains(size), "a composite must have 16 to 1024 pixels per side, not \(size)")
        self.size = size
        let shortSide = size * 3 / 2
        var random = RandomStream(seed: seed, "backdrops")
        let order = random.permutation(of: photos.count)
        var images: [RasterImage] = []
        var skipped: [SkippedImage] = []
        var bytes = 0
        var read = 0
        // The portions have a fixed size, so the choice of photos does not depend on the number of threads.
        while read < order.count && bytes < byteLimit {
            let portion = Array(order[read..<min(read + 32, order.count)])
            let own = workers.parallelMap(portion.count) { position in
                Result { () throws(ImageError) in
                    if let photo = loadedPhoto(portion[position]) { return photo.shrunk(toShortSide: shortSide) }
                    let stored = try photos[portion[position]].stored(
                        coveringShortSide: ImageFile.shortSideToDecode(covering: shortSide))
                    // A photo in memory may have one channel.
                    return stored.upright.flattenedOnWhite().converted(toChannels: 3).shrunk(toShortSide: shortSide)
                }
            }
            let results = workers.processes.sharingFailures(own, of: portion.map { photos[$0].url })
            for (index, result) in zip(portion, results) {
                switch result {
                case .success(let image):
                    images.append(image)
                    bytes += image.samples.count
                case .failure(let reason): skipped.append(SkippedImage(url: photos[index].url, reason: reason))
                }
            }
            read += portion.count
            onRead(read)
        }
        self.skipped = skipped
        self.photos = images
        if SkippedImage.areTooMany(skipped.count, of: read) { throw .tooManyUnreadable(images: read, skipped: skipped) }
    }

    /// Returns background number `index`, without a logo.
    package func background(at index: Int, seed: UInt64) -> RasterImage {
        var random = RandomStream(seed: seed, "background", index)
        return canvas(&random).image
    }

    /// Returns a random crop of a random photo, mirrored with a probability of 0.5, or a drawn pattern.
    func canvas(_ random: inout RandomStream) -> Canvas {
        let share = Float(photos.count) / Float(Self.sufficientPhotoCount)
        guard share >= 1 || share > 0 && random.chance(share) else {
            let palette = Palette(hasPlate: false, hasLightInk: random.chance(0.5), inkCount: 0, &random)
            let background = Background(isBusy: random.chance(0.75), colors: palette.ground, &random)
            var canvas = Canvas(size: size)
            background.paint(on: &canvas)
            return canvas
        }
        let photo = random.element(of: photos)
        let shortSide = min(photo.width, photo.height)
        // A greatly enlarged photo would be blurrier than the logo in front of it.
        let smallest = min(size * 7 / 8, shortSide)
        let side = smallest + random.index(below: shortSide - smallest + 1)
        let (left, top) = (random.index(below: photo.width - side + 1), random.index(below: photo.height - side + 1))
        let isMirrored = random.chance(0.5)
        let part = photo.part(left: left, top: top, width: side, height: side)
        let axis = ResampledAxis(length: side, target: size)
        let canvas = Canvas(side == size ? part : part.resampled(columns: axis, rows: axis))
        return isMirrored ? canvas.mirrored : canvas
    }
}
