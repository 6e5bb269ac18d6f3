internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintSynthesis

/// Writes composites of logos and hard negatives as a data set with bounding boxes in the format of COCO.
struct CompositeDataset {
    /// The name of the file with the boxes.
    static let boxesName = "boxes.json"
    /// The quality of the JPEG files; artefacts of JPEG are part of the composites already.
    private static let quality = 95

    let compositors: [(label: String, compositor: Compositor)]
    /// The height and width of the images, in pixels.
    let size: Int
    let workers: Workers

    /// Writes the images and the boxes.
    ///
    /// Logos and hard negatives alternate, and the labels take turns.
    /// - Parameters:
    ///   - folder: The folder, which is created.
    ///   - count: The number of images.
    ///   - onProgress: A closure that receives the number of written images.
    /// - Returns: The number of boxes.
    /// - Throws: `ImageError` if a composite cannot be drawn, `FileError` if a file cannot be written.
    func write(to folder: URL, count: Int, onProgress: (Int) -> Void) throws -> Int {
        try AtomicFile.makeFolder(folder)
        let boxes = folder.appending(path: Self.boxesName).displayPath
        let file = COCOFile(
            boxes, labels: compositors.map(\.label), header: "{\"info\":{\"description\":\"Composites by Imprint\"},\n")
        for start in stride(from: 0, to: count, by: 32) {
            let portion = start..<min(start + 32, count)
            let results = workers.parallelMap(portion.count) { index in
                Result { try image(start + index) }
            }
            for (index, result) in zip(portion, results) {
                let (jpeg, object) = try result.get()
                let name = String(format: "%06d.jpg", index + 1)
                let url = folder.appending(path: name)
                try AtomicFile.write(jpeg, to: url)
                file.add(object.map { [$0] } ?? [], inPhotoAt: url.displayPath, size: (size, size))
            }
            onProgress(portion.upperBound)
        }
        try file.write()
        return file.objectCount
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
