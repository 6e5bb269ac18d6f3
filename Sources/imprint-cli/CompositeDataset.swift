internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintSynthesis

/// Writes composites of logos and hard negatives as a data set with bounding boxes in COCO format.
struct CompositeDataset {
    /// The name of the file with the boxes.
    static let boxesName = "boxes.json"
    /// The quality of the JPEG files, which is high because the composites already contain JPEG artefacts.
    private static let quality = 95

    let compositors: [(label: String, compositor: Compositor)]
    /// The height and width of the images, in pixels.
    let size: Int
    let workers: Workers

    /// Writes the images and the boxes.
    ///
    /// Logos and hard negatives alternate, and the labels take turns. After an error or a signal, the file with the boxes contains
    /// the boxes of the images that were written.
    /// - Parameters:
    ///   - folder: The folder, which is created.
    ///   - count: The number of images.
    ///   - onProgress: A closure that receives the number of written images.
    ///   - isStopped: Whether to write no more images.
    /// - Returns: The number of images and the number of boxes.
    /// - Throws: `ImageError` if a composite cannot be drawn, `FileError` if a file cannot be written.
    func write(
        to folder: URL, count: Int, isStopped: () -> Bool, onProgress: (Int) -> Void
    ) throws -> (images: Int, boxes: Int) {
        try AtomicFile.makeFolder(folder)
        let boxes = folder.appending(path: Self.boxesName).displayPath
        let file = COCOFile(
            boxes, labels: compositors.map(\.label), header: "{\"info\":{\"description\":\"Composites by Imprint\"},\n")
        do {
            for start in stride(from: 0, to: count, by: 32) where !isStopped() {
                try write(start..<min(start + 32, count), to: folder, file)
                onProgress(file.imageCount)
            }
        } catch {
            // Report the error of the images, not an error of this write.
            try? file.write()
            throw error
        }
        try file.write()
        return (file.imageCount, file.objectCount)
    }

    /// Writes some of the images, and adds them to the file with the boxes.
    private func write(_ indices: Range<Int>, to folder: URL, _ file: COCOFile) throws {
        let results = workers.parallelMap(indices.count) { index in
            Result { try image(indices.lowerBound + index) }
        }
        for (index, result) in zip(indices, results) {
            let (jpeg, object) = try result.get()
            let url = folder.appending(path: String(format: "%06d.jpg", index + 1))
            try AtomicFile.write(jpeg, to: url)
            file.add(object.map { [$0] } ?? [], inPhotoAt: url.displayPath, size: (size, size))
        }
    }

    /// Returns an image as a JPEG, and the box of its logo; nil for a hard negative.
    private func image(_ index: Int) throws(ImageError) -> ([UInt8], COCOFile.Object?) {
        let (showsLogo, number) = (index % 2 == 0, index / 2)
        let (label, compositor) = compositors[number % compositors.count]
        let composite = try showsLogo ? compositor.positive(number) : compositor.hardNegative(number)
        let jpeg = try ImageFile.encodeJPEG(composite.image, quality: Self.quality)
        guard showsLogo else { return (jpeg, nil) }
        return (jpeg, (label, Self.box(around: composite.outline, side: Float(size)), nil))
    }

    /// Returns the bounding box of points in pixels, relative to the image.
    private static func box(around points: [SIMD2<Float>], side: Float) -> NormalizedRectangle {
        let low = points.reduce(SIMD2(repeating: side)) { pointwiseMin($0, $1) } / side
        let high = points.reduce(SIMD2(repeating: 0)) { pointwiseMax($0, $1) } / side
        return NormalizedRectangle(x: low.x, y: low.y, width: high.x - low.x, height: high.y - low.y).clippedToImage
    }
}
