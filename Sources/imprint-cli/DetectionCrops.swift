internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// Writes detections, cut out of their photos, into one folder per label, without replacing files.
final class DetectionCrops {
    /// A detection that is cut out.
    struct Crop {
        let label: String
        let jpeg: [UInt8]
    }

    /// The quality of the JPEG files; higher than that of annotated copies, because crops are often training data.
    private static let quality = 95

    private let folder: URL
    private let path: String
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
    /// - Throws: `FileError` if a crop cannot be written.
    func write(_ crops: [Crop], of photo: PhotoInput) throws {
        for crop in crops {
            let target = folder.appending(path: SortedCopies.folderName(crop.label, noneName: ""))
            try AtomicFile.makeFolder(target)
            for name in copyNames(URL(filePath: photo.relativePath).lastPathComponent, fileExtension: "jpg") {
                let url = target.appending(path: name)
                if (try? Data(contentsOf: url)) == Data(crop.jpeg) {
                    unchanged += 1
                    break
                }
                if !exists(url.displayPath), try AtomicFile.create(url, { try $0.write(crop.jpeg) }) {
                    written += 1
                    break
                }
            }
        }
    }
}
