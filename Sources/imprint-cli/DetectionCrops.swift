internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// Writes detections, cut out of their photos, into one folder per label, without replacing files.
final class DetectionCrops {
    /// A crop of a detection.
    struct Crop {
        let label: String
        let jpeg: [UInt8]
    }

    /// The quality of the JPEG files; higher than that of annotated copies, because crops are often training data.
    private static let quality = 95

    /// The crops with a name, or the name and a number, in a folder.
    private struct Variants {
        /// The remaining names.
        var names: AnyIterator<String>
        /// The number of names so far.
        var count = 0
        /// The digests of the crops with these names.
        var digests: Set<String> = []
    }

    /// The minimum number of variants to keep in memory for later photos of the same name; fewer are read again.
    private static let keptVariants = 8

    private let folder: URL
    private let path: String
    /// The variants of names that several photos have, by the path of the first variant.
    private var variants: [String: Variants] = [:]
    private var written = 0
    private var unchanged = 0

    init(in path: String) { (folder, self.path) = (URL(filePath: path), path) }

    var summary: String {
        let earlier = unchanged > 0 ? "; \(unchanged) more were there already" : ""
        return "Wrote \(written) \(written == 1 ? "crop" : "crops") to \(path)\(earlier)."
    }

    /// Returns the detections of a photo, cut out of the upright photo at full resolution; any number of threads can call it.
    /// - Throws: `ImageError` if the photo cannot be decoded or a crop cannot be encoded.
    func crops(of photo: PhotoInput, _ result: PhotoResult) throws -> [Crop] {
        let boxes = result.classifications.compactMap { classification in
            classification.box.map { (classification.label, $0) }
        }
        guard !boxes.isEmpty else { return [] }
        let image = try StoredImage(photo.url, coveringShortSide: nil)
        return try boxes.map { label, box in
            Crop(
                label: label,
                jpeg: try ImageFile.encodeJPEG(image.cropped(to: box.clippedToImage).upright, quality: Self.quality))
        }
    }

    /// Writes the crops of a photo under its name with a number.
    ///
    /// Each existing crop of the name is read once, so the time is proportional to the number of crops.
    /// - Throws: `FileError` if a crop cannot be written.
    func write(_ crops: [Crop], of photo: PhotoInput) throws {
        let name = URL(filePath: photo.relativePath).lastPathComponent
        var paths: Set<String> = []
        for crop in crops {
            let target = folder.appending(path: SortedCopies.folderName(crop.label, noneName: ""))
            try AtomicFile.makeFolder(target)
            let path = target.appending(path: name).displayPath
            paths.insert(path)
            var names =
                variants.removeValue(forKey: path)
                ?? Variants(names: AnyIterator(copyNames(name, fileExtension: "jpg").makeIterator()))
            try write(crop, to: target, &names)
            variants[path] = names
        }
        for path in paths where variants[path].map({ $0.count < Self.keptVariants }) ?? false { variants[path] = nil }
    }

    /// Writes a crop under the first free name, unless one of the names has an equal crop.
    private func write(_ crop: Crop, to target: URL, _ variants: inout Variants) throws {
        let digest = SHA256.hexadecimal(of: crop.jpeg)
        var isThere = variants.digests.contains(digest)
        while !isThere, let name = variants.names.next() {
            variants.count += 1
            let url = target.appending(path: name)
            if FileStatus(url)?.isFile == true, let data = try? Data(contentsOf: url) {
                variants.digests.insert(SHA256.hexadecimal(of: Array(data)))
                isThere = variants.digests.contains(digest)
            } else if !exists(url), try AtomicFile.create(url, { try $0.write(crop.jpeg) }) {
                variants.digests.insert(digest)
                written += 1
                return
            }
        }
        unchanged += 1
    }
}
