internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// The photos of a detector run: a folder of labelled photos, and annotated photos with boxes.
struct DetectorSource: TrainingSource {
    let labels: [String]
    let items: [TrainingPhoto]
    let digest: String
    let name: String
    /// The objects of the annotated photos.
    let objects: [URL: [AnnotatedPhoto.Object]]
    /// The labelled photos.
    let folder: ImageFolder
    private let annotatedPaths: [URL: String]

    /// Creates a source.
    /// - Parameters:
    ///   - folder: The labelled photos, with the labels of all logos and one more.
    ///   - noLogoLabel: The label of photos that show no logo.
    ///   - annotations: The annotated photos; nil without any.
    /// - Throws: The errors of `BoxAnnotations.cocoData(relativeTo:)`.
    init(_ folder: ImageFolder, noLogoLabel: String, annotations: BoxAnnotations?) throws {
        self.folder = folder
        labels = folder.labels
        guard let annotations else {
            (items, digest, name, objects, annotatedPaths) = (folder.items, folder.digest, folder.name, [:], [:])
            return
        }
        // A photo with boxes does not count a second time as a photo of the folder.
        let annotated = Set(annotations.photos.map { $0.url.resolvingSymlinksInPath() })
        let others = folder.items.filter { !annotated.contains($0.url.resolvingSymlinksInPath()) }
        items =
            others
            + annotations.photos.map { photo in
                let label = photo.mainLabel ?? noLogoLabel
                return TrainingPhoto(url: photo.url, label: folder.labels.firstIndex(of: label) ?? 0)
            }
        let boxes = SHA256.hexadecimal(of: Array(try annotations.cocoData()))
        digest = SHA256.hexadecimal(of: Array("\(folder.digest)\n\(boxes)\n".utf8))
        name = folder.items.isEmpty ? "the annotated photos" : folder.name
        objects = Dictionary(annotations.photos.map { ($0.url, $0.objects) }, uniquingKeysWith: { $0 + $1 })
        // The index keeps photos of the same name in different folders apart, wherever the data set is.
        annotatedPaths = Dictionary(
            annotations.photos.enumerated().map { ($1.url, "annotated/\($0)/\($1.url.lastPathComponent)") },
            uniquingKeysWith: { first, _ in first })
    }

    func path(of item: TrainingPhoto) -> String { annotatedPaths[item.url] ?? folder.path(of: item) }

    var ignored: [URL] { folder.ignored }
}

extension AnnotatedPhoto {
    /// The label of the largest object, which represents the whole photo; nil without objects.
    fileprivate var mainLabel: String? {
        objects.max { $0.box.width * $0.box.height < $1.box.width * $1.box.height }?.label
    }
}
