public import Foundation
internal import Imprint
internal import ImprintCore
public import ImprintImages

/// Photos with bounding boxes, to train and evaluate detectors.
///
/// The content of the file or folder determines the format:
///
/// - COCO: a JSON object with `images`, `annotations` and `categories`.
/// - Create ML: a JSON array of `{"image": "a.jpg", "annotations": [{"label": …, "coordinates": …}]}`, or with the keys `imagefilename` and
///   `annotation`.
/// - YOLO: a folder with data.yaml, or the file data.yaml itself; one text file per photo. `train`, `val` and `test` name the photos. A list of
///   classes, classes.txt or obj.names, can replace data.yaml; its photos are all those in the folder.
/// - Pascal VOC: a folder of XML files, or one XML file.
///
/// Boxes refer to the upright photo. If a file states the size of the stored photo instead, before its EXIF orientation is applied, the
/// boxes are rotated upright. Boxes without area or outside their photo are dropped, and photos whose boxes were all dropped are left out;
/// `warnings` reports both.
///
/// ```swift
/// let annotations = try BoxAnnotations(contentsOf: URL(filePath: "cars.json"))
/// for warning in annotations.warnings { print(warning) }
/// ```
public struct BoxAnnotations: Sendable {
    /// The names of the labels, in the order of their Unicode scalars, including labels without boxes.
    public let labels: [String]
    /// The photos, in the order of the Unicode scalars of their paths; a photo without objects shows none of the
    /// labels.
    public let photos: [AnnotatedPhoto]
    /// The problems that reading resolved, such as clipped or dropped boxes: one line for each kind of problem, with
    /// examples.
    public let warnings: [String]
    /// The line of `warnings` that names the parts of the dataset split that were read, which is no problem; nil without it.
    package let partsLine: String?
    /// The line of `warnings` about `splitFolders`; nil without it.
    package let splitsLine: String?
    /// The photos that are missing or unreadable, with the reasons; their boxes are not in `photos`.
    public let skipped: [SkippedImage]

    /// The path of the annotations, for messages.
    package let name: String

    /// The labels that at least one object has, without crowds; a file may list categories that it does not use.
    package var usedLabels: [String] {
        let used = Set(photos.lazy.flatMap(\.objects).filter { !$0.isCrowd }.map(\.label))
        return labels.filter(used.contains)
    }

    /// The maximum size of an annotation file in bytes (512 MiB), because the whole file is read into memory.
    package static let byteLimit = 512 << 20

    /// The memory for reading an annotation file, relative to its size: the file, the decoder's index of its values, and the entries.
    static let memoryFactor = 8

    /// The problems of boxes and photos, if they were recorded.
    package let problems: [BoxProblem]

    /// The photos whose boxes were all dropped.
    ///
    /// They are not in `photos`, because they show objects at unknown positions.
    package let withoutUsableBoxes: [URL]

    /// The parts of the dataset split that data.yaml names, including those that were not read; empty for other formats.
    package let availableParts: Set<DatasetPart>

    /// The first folder of each part, if folders such as train and val were read together because the annotations name no parts; else empty.
    package let splitFolders: [DatasetPart: URL]

    /// The part of each photo according to data.yaml, by its location; empty if the annotations name no parts.
    let statedParts: [URL: DatasetPart]

    /// The photos that data.yaml names for several parts, and the second of these parts; `statedParts` has the first.
    let sharedPhotos: [URL: DatasetPart]

    /// The folders that paths in the annotation file can be relative to; empty for annotations of an app.
    let folders: [URL]

    /// Creates annotations that are known to be valid.
    package init(
        uncheckedLabels labels: [String], photos: [AnnotatedPhoto], warnings: [String] = [],
        skipped: [SkippedImage] = [], name: String = "the data set", problems: [BoxProblem] = [],
        withoutUsableBoxes: [URL] = [], folders: [URL] = []
    ) {
        self.folders = folders
        (self.labels, self.photos, self.warnings, self.skipped) = (labels, photos, warnings, skipped)
        (self.name, self.problems, self.withoutUsableBoxes) = (name, problems, withoutUsableBoxes)
        (partsLine, splitsLine) = (nil, nil)
        (availableParts, splitFolders, statedParts, sharedPhotos) = ([], [:], [:], [:])
    }

    /// The name of annotations from an app: a relative URL, so that its path is not resolved against the current folder.
    private static let nameOfData = URL(string: "the%20data%20set")!

    /// Creates annotations from the labels and boxes of an app; does not read the photos.
    ///
    /// Unusable boxes are resolved as in files, with a line in `warnings`: boxes that extend beyond their photo are clipped, boxes without area
    /// or outside their photo are dropped, and several entries of a photo are combined.
    /// - Parameters:
    ///   - labels: The names of the labels, each only once, in any order.
    ///   - photos: The photos and their objects, in any order.
    ///   - recordsProblems: Whether to record each clipped or dropped box for an `Audit`, instead of in `warnings`.
    /// - Throws: `ImprintError.invalidSetting` if a label is not unique or there are no photos. `BoxAnnotationsError` if the size of a photo is
    ///   not positive, an object has an unknown label, or no box can be used.
    public init(labels: [String], photos: [AnnotatedPhoto], recordsProblems: Bool = false) throws {
        var known: Set<String> = []
        for label in labels where !known.insert(label).inserted {
            throw ImprintError.invalidSetting(
                name: "labels", found: "a list with \(quotedName(label)) twice", expected: "each label only once")
        }
        guard !photos.isEmpty else {
            throw ImprintError.invalidSetting(name: "photos", found: "empty", expected: "at least one photo")
        }
        var collector = BoxCollector(
            source: Self.nameOfData, warnings: AnnotationWarnings(), recordsProblems: recordsProblems)
        try collector.add(photos, labels: labels)
        try self.init(collector, AnnotationContents(labels: labels, photos: []))
    }

    /// Reads annotations; the photos are not decoded, only their sizes are read.
    ///
    /// - Parameters:
    ///   - url: The annotation file, or the folder of the data set. A folder with a single JSON file stands for this file.
    ///   - photos: The folder that the file names are relative to. If nil, this is the folder of the annotation file,
    ///     the folder `images` in it or, for a file in a folder `annotations`, the parent folder. For YOLO, the
    ///     parameter selects the photos to read, such as those in `images/val`, and replaces `part`.
    ///   - part: The part of a YOLO data set to read: the key `train`, `val` or `test` of data.yaml. Without the key, `test` stands for `val`,
    ///     and `val` for `train`. Nil selects the photos of all parts, or all photos in the folder if data.yaml has none of the keys.
    ///   - recordsProblems: Whether to record each problem of a box or photo for an `Audit`, instead of in `warnings`.
    ///   - threads: The number of threads that read the sizes of photos, at least 1; nil for one thread per core. The result does not depend
    ///     on it.
    /// - Throws: `BoxAnnotationsError` if a file is invalid, no photo can be read, or no box can be used; `ImageError`
    ///   if the folder of the photos cannot be read, or if the name of a file in a folder is not UTF-8.
    public init(
        contentsOf url: URL, photos: URL? = nil, part: DatasetPart? = nil, recordsProblems: Bool = false,
        threads: Int? = nil
    ) throws {
        if let photos {
            let status = FileStatus(photos)
            guard status?.isFolder == true else {
                throw BoxAnnotationsError.noPhotoFolder(
                    file: photos, found: status == nil ? "no such folder" : "a file")
            }
        }
        let (source, contents) = try Self.contents(of: url, photos: photos, part: part)
        guard !contents.photos.isEmpty else { throw BoxAnnotationsError.noPhotos(file: source) }
        var collector = BoxCollector(source: source, warnings: contents.warnings, recordsProblems: recordsProblems)
        collector.add(contents.photos, workers: Workers(threads ?? Processors.coreCount))
        // Without usable boxes, the error below names the first box.
        guard !collector.photos.isEmpty || collector.firstDropped != nil else {
            throw BoxAnnotationsError.noReadablePhotos(
                file: source, photos: contents.photos.count, reason: collector.skipped.first?.reason.description ?? "",
                folders: contents.folders.reduce(into: []) { if !$0.contains($1) { $0.append($1) } })
        }
        let folder = FileStatus(source)?.isFolder == true ? source : source.absoluteURL.deletingLastPathComponent()
        try self.init(collector, contents, folders: contents.folders + [folder])
    }

    /// Creates annotations from the photos that were compared with their boxes; uses only the labels and the parts of `contents`.
    private init(
        _ collector: BoxCollector, _ contents: AnnotationContents, folders: [URL] = []
    ) throws(BoxAnnotationsError) {
        if collector.keptBoxes == 0, let (file, entry, problem) = collector.firstDropped {
            throw .noUsableBoxes(file: file, entry: entry, problem: problem)
        }
        var collector = collector
        // Labels that differ only in their Unicode normalization are equal strings; the first one remains, in any order of the file.
        var known: Set<String> = []
        labels = contents.labels.sorted(by: precedes).filter { known.insert($0).inserted }
        collector.warnAboutLabelsWithoutBoxes(labels)
        photos = collector.photos
        warnings = collector.warnings.lines(
            file: collector.source, isAudited: collector.recordsProblems)
        partsLine = collector.warnings.line(.parts, file: collector.source)
        splitsLine = collector.warnings.line(.severalSplits, file: collector.source)
        skipped = collector.skipped
        name = collector.source.displayPath
        problems = collector.problems
        withoutUsableBoxes = collector.withoutUsableBoxes
        (availableParts, splitFolders) = (contents.availableParts, contents.splitFolders)
        (statedParts, sharedPhotos) = (contents.parts, contents.sharedPhotos)
        self.folders = folders
    }

    /// Throws `ImageError.tooManyUnreadable` if more than half of all photos are missing or unreadable.
    /// - Parameter skipped: The missing and unreadable photos, including those of the property `skipped`; nil for only those of the
    ///   property.
    func checkEnoughAreReadable(skipped: [SkippedImage]? = nil) throws(ImageError) {
        let (skipped, total) = (skipped ?? self.skipped, photos.count + self.skipped.count)
        guard SkippedImage.areTooMany(skipped.count, of: total) else { return }
        throw .tooManyUnreadable(images: total, skipped: skipped)
    }

    /// Reads the file or folder; its content decides the format.
    private static func contents(
        of url: URL, photos: URL?, part: DatasetPart?
    ) throws -> (source: URL, contents: AnnotationContents) {
        guard let status = FileStatus(url) else {
            throw BoxAnnotationsError.unreadable(file: url, reason: "there is no such file or folder")
        }
        guard status.isFolder else { return (url, try file(url, photos: photos, part: part)) }
        let names = try annotationPaths(in: url, extensions: ["yaml", "yml", "json", "xml"], isRecursive: false)
        if let yaml = names.first(where: { ["data.yaml", "data.yml"].contains($0.lowercased()) }) {
            let file = url.appending(path: yaml)
            return (file, try YOLOAnnotations(file, photos: photos, part: part).contents())
        }
        let json = names.filter { $0.lowercased().hasSuffix(".json") }
        // A folder may have files of several formats, such as XML files of LabelImg from before a change of its format.
        if json.count == 1, hasBoxes(url.appending(path: json[0])) {
            return try (url.appending(path: json[0]), file(url.appending(path: json[0]), photos: photos, part: part))
        }
        let list = try classList(in: url)
        if let list, try hasTextFiles(url) {
            return (list, try YOLOAnnotations(list, photos: photos, part: part).contents())
        }
        if try VOCAnnotations.folder(in: url) != nil {
            return (url, try VOCAnnotations(folder: url, photos: photos).contents())
        }
        if let list { return (list, try YOLOAnnotations(list, photos: photos, part: part).contents()) }
        guard json.count == 1 else {
            // A sub-folder that cannot be read may have XML files.
            if json.isEmpty { _ = try annotationPaths(in: url, extensions: ["xml"]) }
            throw BoxAnnotationsError.unknownFormat(
                file: url,
                found: json.isEmpty
                    ? "a folder without data.yaml, classes.txt, XML or JSON files"
                    : "a folder with \(json.count) JSON files",
                fix: json.isEmpty ? missingYAMLFix(url) : "")
        }
        let only = url.appending(path: json[0])
        return (only, try file(only, photos: photos, part: part))
    }

    /// Whether a JSON file has boxes; other programs write notes beside a list of classes.
    static func hasBoxes(_ json: URL) -> Bool {
        guard let data = try? annotationData(json) else { return false }
        return BoxFormat(data, of: json) != nil
    }

    /// Whether a folder or its sub-folders have text files that can have YOLO boxes.
    private static func hasTextFiles(_ folder: URL) throws -> Bool {
        try annotationPaths(in: folder, extensions: ["txt"]).contains { !folder.appending(path: $0).isClassList }
    }

    /// Returns the list of the classes of a YOLO data set, beside the text files in `labels` or in its folder; nil without a list.
    private static func classList(in folder: URL) throws -> URL? {
        for folder in [folder.appending(path: "labels"), folder] where FileStatus(folder)?.isFolder == true {
            let names = try annotationPaths(in: folder, extensions: ["txt", "names"], isRecursive: false)
            if let list = names.map({ folder.appending(path: $0) }).first(where: \.isClassList) { return list }
        }
        return nil
    }

    /// Returns a sentence about what to use instead of a folder without data.yaml: the data.yaml or list of classes above it, or the annotation file
    /// of a part of the data set; empty for other folders.
    private static func missingYAMLFix(_ folder: URL) -> String {
        // A part is a folder such as train, or images/train.
        let parent = folder.absoluteURL.standardizedFileURL.deletingLastPathComponent()
        let parents = [parent, parent.deletingLastPathComponent()]
        let files = parents.flatMap { folder in ["data.yaml", "data.yml"].map { folder.appending(path: $0) } }
        if let file = files.first(where: { FileStatus($0)?.isFile == true }) {
            return "Use \(file.displayPath), which describes the data set."
        }
        if let list = parents.lazy.compactMap({ try? classList(in: $0) }).first {
            return "Use \(list.displayPath), which lists the classes of the data set."
        }
        let parts = ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).sorted()
        for part in parts where BoxFormat.partKey(ofFolder: part) == "train" {
            let location = folder.appending(path: part)
            let names = (try? annotationPaths(in: location, extensions: ["json"], isRecursive: false)) ?? []
            if names.count == 1 { return "Use \(location.appending(path: names[0]).displayPath)." }
        }
        guard FileStatus(folder.appending(path: "labels"))?.isFolder == true else { return "" }
        return "Create a file data.yaml in the folder that lists the names of the classes in order: names: [cat, dog]"
    }

    private static func file(_ url: URL, photos: URL?, part: DatasetPart?) throws -> AnnotationContents {
        let data = try annotationData(url)
        let finder = PhotoFinder(annotationFile: url, photos: photos)
        // The reader of the only possible format explains best why its content is wrong.
        switch BoxFormat(onlyPossibleIn: data, of: url) {
        case .yolo: return try YOLOAnnotations(url, photos: photos, part: part).contents()
        case .coco: return try COCOAnnotations(data, file: url).contents(finder)
        case .createML: return try CreateMLAnnotations(data, file: url).contents(finder)
        case .pascalVOC: return try VOCAnnotations(file: url, photos: photos).contents()
        case nil:
            let kind = FileKind([UInt8](data))
            let isText = kind == .text(.plain) || kind == .unknown
            throw BoxAnnotationsError.unknownFormat(
                file: url, found: isText ? "\(kind.name) that is neither JSON nor XML" : kind.name)
        }
    }
}
