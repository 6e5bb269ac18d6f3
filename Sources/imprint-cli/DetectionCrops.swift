internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// Writes detections, cut out of their photos, into one folder per label, without replacing files.
final class DetectionCrops {
    /// A crop of a detection, in a hidden file until its name is known.
    struct Crop {
        /// The folder of its label.
        let folder: URL
        /// The digest of its JPEG.
        let digest: String
        let file: AtomicFile.Draft
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
        return "Wrote \(counted(written, "crop")) to \(path)\(earlier)."
    }

    /// Cuts the detections of a photo out of the upright photo at full resolution; any number of threads can call it.
    ///
    /// A photo can have a thousand detections, so each crop is written as soon as it is encoded. A crop that is too long for a JPEG is scaled down.
    /// - Returns: The crops, whose hidden files are removed unless `write(_:of:)` names them.
    /// - Throws: `ImageError` if the photo cannot be decoded or a crop cannot be encoded, `FileError` if a crop cannot be written.
    func crops(of photo: PhotoInput, _ result: PhotoResult) throws -> [Crop] {
        let boxes = result.classifications.compactMap { classification in
            classification.box.map { (classification.label, $0) }
        }
        guard !boxes.isEmpty else { return [] }
        let image = try StoredImage(photo.url, coveringShortSide: nil)
        return try boxes.map { label, box in
            let part = image.cropped(to: box.clippedToImage).upright.shrunk(toLongSide: ImageFile.jpegSideLimit)
            let jpeg = try ImageFile.encodeJPEG(part, quality: Self.quality)
            let target = folder.appending(path: SortedCopies.folderName(label, noneName: ""))
            try AtomicFile.makeFolder(target)
            return Crop(
                folder: target, digest: SHA256.hexadecimal(of: jpeg),
                file: try AtomicFile.Draft(in: target) { try $0.write(jpeg) })
        }
    }

    /// Gives the crops of a photo its name with a number.
    ///
    /// Each existing crop of the name is read once, so the time is proportional to the number of crops.
    /// - Throws: `FileError` if a crop cannot be written.
    func write(_ crops: [Crop], of photo: PhotoInput) throws {
        let name = URL(filePath: photo.relativePath).lastPathComponent
        var paths: Set<String> = []
        for crop in crops {
            let path = crop.folder.appending(path: name).displayPath
            paths.insert(path)
            var names =
                variants.removeValue(forKey: path)
                ?? Variants(names: AnyIterator(copyNames(name, fileExtension: "jpg").makeIterator()))
            try write(crop, &names)
            variants[path] = names
        }
        for path in paths where variants[path].map({ $0.count < Self.keptVariants }) ?? false { variants[path] = nil }
    }

    /// Gives a crop the first free name, unless one of the names has an equal crop.
    private func write(_ crop: Crop, _ variants: inout Variants) throws {
        var isThere = variants.digests.contains(crop.digest)
        while !isThere, let name = variants.names.next() {
            variants.count += 1
            let url = crop.folder.appending(path: name)
            if FileStatus(url)?.isFile == true, let data = try? Data(contentsOf: url) {
                variants.digests.insert(SHA256.hexadecimal(of: Array(data)))
                isThere = variants.digests.contains(crop.digest)
            } else if !exists(url), try crop.file.create(name) {
                variants.digests.insert(crop.digest)
                written += 1
                return
            }
        }
        unchanged += 1
    }
}
