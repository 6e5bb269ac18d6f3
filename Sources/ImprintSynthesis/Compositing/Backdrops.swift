package import Foundation
package import ImprintCore
package import ImprintImages

/// What composites have behind them: crops of photos, or drawn patterns if there are none.
package final class Backdrops: Sendable {
    /// The photos that could not be read.
    package let skipped: [SkippedImage]
    /// How many photos there are.
    package var count: Int { photos.count }

    private let photos: [RasterImage]
    let size: Int

    /// Reads photos and keeps them in memory, 8 bits a sample, with a short side of at most one and a half times `size`.
    ///
    /// - Parameters:
    ///   - files: The photos; patterns are drawn if there are none. None of them should show the logo.
    ///   - size: The height and width of the composites, in pixels.
    ///   - byteLimit: How much memory the photos may take; once it is full, the others are left out, which chance chooses.
    ///   - seed: What this chance follows from.
    ///   - workers: The threads that share the reading.
    ///   - onRead: Told now and then how many photos have been read.
    ///   - picture: The photo of a place, as it is in its file, if it is in memory already: it takes no more of it then. Called on
    ///     any of the threads.
    /// - Throws: `ImageError.tooManyUnreadable` if more than half of the photos cannot be read.
    package init(
        _ files: [URL], size: Int, byteLimit: Int = 256 << 20, seed: UInt64 = 0, workers: Workers,
        onRead: (Int) -> Void = { _ in }, inMemory picture: (_ place: Int) -> RasterImage? = { _ in nil }
    ) throws(ImageError) {
        precondition((16...1024).contains(size), "a composite has 16 to 1024 pixels a side, not \(size)")
        self.size = size
        let shortSide = size * 3 / 2
        var random = RandomStream(seed: seed, "backdrops")
        let order = random.permutation(of: files.count)
        var photos: [RasterImage] = []
        var skipped: [SkippedImage] = []
        var bytes = 0
        var read = 0
        // In portions of a fixed size, so that the same photos are kept for any number of threads.
        while read < order.count && bytes < byteLimit {
            let portion = Array(order[read..<min(read + 32, order.count)])
            let results = workers.parallelMap(portion.count) { place in
                Result { () throws(ImageError) in
                    if let photo = picture(portion[place]) { return photo.shrunk(toShortSide: shortSide) }
                    return try ImageFile.decode(
                        files[portion[place]], coveringShortSide: ImageFile.shortSideToDecode(covering: shortSide)
                    ).shrunk(toShortSide: shortSide)
                }
            }
            for (place, result) in zip(portion, results) {
                switch result {
                case .success(let photo):
                    photos.append(photo)
                    bytes += photo.samples.count
                case .failure(let reason): skipped.append(SkippedImage(url: files[place], reason: reason))
                }
            }
            read += portion.count
            onRead(read)
        }
        self.skipped = skipped
        self.photos = photos
        if 2 * skipped.count > read { throw .tooManyUnreadable(images: read, skipped: skipped) }
    }

    /// A background without a logo: the one of an index.
    package func picture(_ index: Int, seed: UInt64) -> RasterImage {
        var random = RandomStream(seed: seed, "background", index)
        return canvas(&random).image
    }

    /// A random crop of a random photo, half of them mirrored, or a drawn pattern.
    func canvas(_ random: inout RandomStream) -> Canvas {
        guard !photos.isEmpty else {
            let palette = Palette(hasPlate: false, hasLightInk: random.chance(0.5), inkCount: 0, &random)
            let background = Background(isBusy: random.chance(0.75), colors: palette.ground, &random)
            var canvas = Canvas(size: size)
            background.paint(on: &canvas)
            return canvas
        }
        let photo = random.element(of: photos)
        let shortSide = min(photo.width, photo.height)
        // Not much enlarged: the mark upon it would be sharper than the photo.
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
