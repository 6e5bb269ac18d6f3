package import Foundation
package import ImprintCore
internal import ImprintImages

extension DrawingRecipe {
    /// The parameters of a drawn data set, stored in a hidden file in its folder.
    private struct Stamp: Codable, Equatable, CustomStringConvertible {
        static let fileName = ".drawing.json"

        let recipe: DrawingRecipe
        let count: Int
        let seed: UInt64

        var description: String { "the recipe \"\(recipe.name)\", \(counted(count, "image")), seed \(seed)" }
    }

    /// Draws a data set: `count` JPEG files, split evenly over the labels, as `folder/label/00001.jpg` and so on.
    ///
    /// The same recipe, count and seed give identical files. If the folder was drawn with the same recipe, count and seed, its
    /// images are drawn again. Otherwise the folder must be empty or missing.
    /// - Parameters:
    ///   - folder: The folder to write, created if it is missing.
    ///   - count: The number of images, at least one per label.
    ///   - seed: The random seed.
    ///   - workers: The threads that share the work.
    ///   - isStopped: Whether to draw no more images; called from time to time.
    ///   - onProgress: Receives the number of finished images, from time to time.
    /// - Returns: The number of images, which is less than `count` after a stop.
    /// - Throws: `DrawingError` if the folder holds other files or the count is out of range, `FileError` or `ImageError` if a file
    ///   cannot be written.
    @discardableResult
    package func write(
        to folder: URL, count: Int, seed: UInt64, workers: Workers, isStopped: () -> Bool = { false },
        onProgress: (Int) -> Void = { _ in }
    ) throws -> Int {
        let counts = labels.count...10_000_000
        guard counts.contains(count) else { throw DrawingError.invalidCount(count: count, expected: counts) }
        try claim(folder, for: Stamp(recipe: self, count: count, seed: seed))
        var files: [(label: Int, index: Int)] = []
        for label in labels.indices {
            try AtomicFile.makeFolder(folder.appending(path: labels[label].name))
            files += (0..<imageCount(ofLabel: label, count: count)).map { (label, $0) }
        }
        for start in stride(from: 0, to: files.count, by: 256) {
            if isStopped() { return start }
            let part = files[start..<min(start + 256, files.count)]
            _ = try workers.parallelMap(part.count, onProgress: { onProgress(start + $0) }) {
                position throws(ImageError) in
                let (label, index) = part[start + position]
                let name = String(format: "%05d.jpg", index + 1)
                let url = folder.appending(path: "\(labels[label].name)/\(name)")
                try ImageFile.write(draw(label: label, index: index, seed: seed), to: url, quality: 92)
            }
        }
        return files.count
    }

    /// Stores the parameters in a new folder, or checks those of an existing data set.
    private func claim(_ folder: URL, for stamp: Stamp) throws {
        switch try StampedFolder(claiming: folder, for: stamp, named: Stamp.fileName) {
        case .new: break
        case .foreign(let entry): throw DrawingError.foreignFolder(folder: folder, found: entry)
        case .stamped(nil): throw DrawingError.foreignFolder(folder: folder, found: Stamp.fileName)
        case .stamped(let found?):
            guard found == stamp else {
                throw DrawingError.otherDrawing(folder: folder, found: "\(found)", expected: "\(stamp)")
            }
        }
    }
}
