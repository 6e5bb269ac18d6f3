package import Foundation
internal import ImprintCore
internal import ImprintImages

/// The content of annotation files, not yet compared with the photos.
struct AnnotationContents {
    var labels: [String]
    var photos: [StatedPhoto]
    var warnings = AnnotationWarnings()
    /// The folders in which the photos were searched for.
    var folders: [URL] = []
    /// The parts of the dataset split that the file names; empty if it names none.
    var availableParts: Set<DatasetPart> = []
    /// The part of each photo, by its location; empty if the file names no parts.
    var parts: [URL: DatasetPart] = [:]
    /// The photos that belong to several parts, and the second of these parts; `parts` has the first.
    var sharedPhotos: [URL: DatasetPart] = [:]
    /// The first folder of each part, if folders such as train and val are read together because the file names no parts.
    var splitFolders: [DatasetPart: URL] = [:]
}

/// A photo as an annotation file describes it.
struct StatedPhoto {
    var url: URL
    /// The annotation file.
    var source: URL
    /// The size in pixels according to the file; nil if it states none.
    var size: (width: Double, height: Double)?
    /// Whether boxes are in pixels; otherwise in fractions of the width and height.
    var isInPixels: Bool
    var boxes: [StatedBox] = []
}

/// A box as an annotation file describes it, from its upper left corner; its numbers may have any value.
struct StatedBox {
    var label: String
    var x: Double
    var y: Double
    var width: Double
    var height: Double
    var isCrowd = false
    /// The entry of the file, as in "line 3".
    var entry: String
}

/// The problems that reading resolved, counted by kind.
struct AnnotationWarnings {
    /// A kind of problem; its text precedes the number of cases and examples.
    enum Kind: String, CaseIterable {
        case clipped = "clipped boxes that extend more than 1 pixel beyond the photo"
        case notFinite = "dropped boxes with a coordinate that is not a finite number"
        case notPositive = "dropped boxes whose width or height is not positive"
        case outside = "dropped boxes that are outside of the photo"
        case swapped = "boxes of negative width or height; swapped their edges"
        case withoutUsableBoxes = "left out photos whose boxes were all dropped"
        case unknownImage = "dropped boxes whose image_id is not in images"
        case rotated =
            "photos whose boxes refer to the stored picture; rotated the boxes upright by the EXIF orientation"
        case ambiguous = "photos with an EXIF orientation; assumed that their boxes refer to the upright picture"
        case scaled = "photos whose size differs from the stated size; scaled the boxes relative to the stated size"
        case invalidSize = "photos whose stated size is not positive; ignored the stated size"
        case repeatedPhoto = "photos with several entries; combined the boxes of the entries"
        case foundByStem = "photos found by the name of the XML file, because the stated file name does not exist"
        case equalNames = "labels with several ids; combined their boxes"
        case withoutBoxes = "labels without boxes"
        case unusedTextFile = "text files without a photo"
        case unusedPhoto = "ignored images outside of the folders named images that have no text file"
    }

    /// A kind of note about the whole data set.
    enum Note: CaseIterable {
        /// Probable mistakes in the keys of data.yaml.
        case keys
        /// The parts of the dataset split that were read.
        case parts
        /// The folders of several parts, which were read together because the file names no parts.
        case severalSplits
        /// Lists of photos that are empty.
        case emptyLists
        /// Folders in which most photos have no text file.
        case missingTextFiles
    }

    private var notes: [Note: String] = [:]
    private var counts: [Kind: Int] = [:]
    private var examples: [Kind: [String]] = [:]

    /// The maximum length of an example; names and ids may have any length.
    private static let exampleLength = 80

    /// Adds a case of a problem; `example` is evaluated only if it is shown.
    mutating func add(_ kind: Kind, _ example: @autoclosure () -> String) {
        counts[kind, default: 0] += 1
        guard examples[kind, default: []].count < 3 else { return }
        examples[kind, default: []].append(abbreviated(example(), Self.exampleLength))
    }

    /// Adds a note, without a full stop.
    mutating func note(_ kind: Note, _ text: String) { notes[kind] = text }

    /// Returns the line of a note; nil if there is no such note.
    func line(_ note: Note, file: URL) -> String? { notes[note].map { "\(file.displayPath): \($0)" } }

    /// The kinds of problems that an audit reports one by one.
    private static let audited: Set<Kind> = [
        .clipped, .notFinite, .notPositive, .outside, .swapped, .ambiguous, .scaled, .withoutBoxes,
    ]

    /// Returns the notes, and a line for each kind of problem.
    /// - Parameter isAudited: Whether an audit reports single problems and compares the splits, so that their lines are left out.
    func lines(file: URL, isAudited: Bool) -> [String] {
        let notes = Note.allCases.compactMap { kind in
            isAudited && kind == .severalSplits ? nil : line(kind, file: file)
        }
        return notes
            + Kind.allCases.compactMap { kind in
                guard !(isAudited && Self.audited.contains(kind)), let count = counts[kind],
                    let examples = examples[kind]
                else { return nil }
                let rest = count > examples.count ? " and \(count - examples.count) more" : ""
                return "\(file.displayPath): \(kind.rawValue): \(count) (\(examples.joined(separator: ", "))\(rest))"
            }
    }
}

/// A problem of a box or of its photo that reading resolved.
package struct BoxProblem: Hashable, Sendable {
    /// The kind of a problem.
    package enum Kind: Hashable, Sendable {
        /// A box that was clipped to its photo.
        case clipped
        /// A box with a coordinate that is not a finite number.
        case notFinite
        /// A box without area.
        case empty
        /// A box whose right edge is left of its left edge, or its lower edge above its upper edge.
        case swapped
        /// A box outside of its photo.
        case outside
        /// A photo with an EXIF orientation, for which it is unclear whether the boxes refer to the upright or to the stored photo.
        case ambiguousOrientation
        /// A photo whose size differs from the size in the annotations.
        case otherSize
    }

    package let kind: Kind
    package let photo: URL
    /// The entry and the values, as in "line 3: cat, x 5, y 5, 0 x 4 pixels".
    package let details: String
}

/// Compares annotations with the photos and converts the boxes.
struct BoxCollector {
    /// The file or folder of the annotations.
    let source: URL
    var warnings: AnnotationWarnings
    private(set) var photos: [AnnotatedPhoto] = []
    private(set) var skipped: [SkippedImage] = []
    /// The photos whose boxes were all dropped.
    private(set) var withoutUsableBoxes: [URL] = []
    private(set) var keptBoxes = 0
    /// The problems of boxes and photos, if they are recorded.
    private(set) var problems: [BoxProblem] = []
    let recordsProblems: Bool
    /// The first box that was dropped because of its coordinates.
    private(set) var firstDropped: (file: URL, entry: String, problem: String)?

    init(source: URL, warnings: AnnotationWarnings, recordsProblems: Bool) {
        (self.source, self.warnings, self.recordsProblems) = (source, warnings, recordsProblems)
    }

    /// Records a problem, with details that are only evaluated if they are needed.
    private mutating func record(_ kind: BoxProblem.Kind, _ photo: URL, _ details: @autoclosure () -> String) {
        if recordsProblems { problems.append(BoxProblem(kind: kind, photo: photo, details: details())) }
    }

    /// Groups the entries of each photo, in the order of the photos' paths.
    ///
    /// The bytes of the paths decide, because names that differ only in their Unicode normalization are equal strings.
    private static func grouped<Entry>(_ entries: [Entry], by url: (Entry) -> URL) -> [[Entry]] {
        Dictionary(grouping: entries) { Array(url($0).standardizedFileURL.displayPath.utf8) }
            .sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value)
    }

    /// Adds photos; reads the header of each of their files once.
    mutating func add(_ stated: [StatedPhoto], workers: Workers) {
        let groups = Self.grouped(stated, by: \.url)
        let headers = workers.parallelMap(groups.count) { index in
            Result { () throws(ImageError) in try ImageFile.information(of: groups[index][0].url) }
        }
        for (entries, header) in zip(groups, headers) {
            let url = entries[0].url
            switch header {
            case .failure(let error): skipped.append(SkippedImage(url: url, reason: error))
            case .success(let header):
                if entries.count > 1 { warnings.add(.repeatedPhoto, url.lastPathComponent) }
                let found = entries.flatMap { objects(of: $0, header) }
                add(url, header.uprightSize, found, hasBoxes: !entries.allSatisfy(\.boxes.isEmpty))
            }
        }
    }

    /// Adds a photo, unless all its boxes were dropped: it then shows objects at unknown positions, so it is not background.
    private mutating func add(
        _ url: URL, _ size: (width: Int, height: Int), _ objects: [AnnotatedPhoto.Object], hasBoxes: Bool
    ) {
        guard !objects.isEmpty || !hasBoxes else {
            warnings.add(.withoutUsableBoxes, url.lastPathComponent)
            withoutUsableBoxes.append(url)
            return
        }
        photos.append(AnnotatedPhoto(url: url, width: size.width, height: size.height, objects: objects))
    }

    /// Adds annotated photos without reading their files.
    /// - Throws: `BoxAnnotationsError.invalidEntry` if a photo has no pixels, or if an object does not have one of the labels.
    mutating func add(_ annotated: [AnnotatedPhoto], labels: [String]) throws(BoxAnnotationsError) {
        let known = Set(labels)
        let groups = Self.grouped(annotated, by: \.url)
        for entries in groups {
            let photo = entries[0]
            guard photo.width > 0, photo.height > 0 else {
                throw .invalidEntry(
                    file: photo.url, entry: "the photo", found: "a size of \(photo.width)x\(photo.height) pixels",
                    expected: "at least 1x1 pixels")
            }
            if entries.count > 1 { warnings.add(.repeatedPhoto, photo.url.lastPathComponent) }
            var stated = StatedPhoto(url: photo.url, source: photo.url, isInPixels: false)
            for (index, object) in entries.flatMap(\.objects).enumerated() {
                let entry = "box \(index + 1)"
                guard known.contains(object.label) else {
                    throw .invalidEntry(
                        file: photo.url, entry: entry, found: "the label \(quotedName(object.label))",
                        expected: "one of the labels \(abbreviated(labels.joined(separator: ", "), 200))")
                }
                let box = object.box
                stated.boxes.append(
                    StatedBox(
                        label: object.label, x: Double(box.x), y: Double(box.y), width: Double(box.width),
                        height: Double(box.height), isCrowd: object.isCrowd, entry: entry))
            }
            let found = objects(of: stated, in: (Double(photo.width), Double(photo.height), .up))
            add(photo.url, (photo.width, photo.height), found, hasBoxes: !stated.boxes.isEmpty)
        }
    }

    /// Warns about labels that no box has: a detector cannot learn them.
    mutating func warnAboutLabelsWithoutBoxes(_ labels: [String]) {
        let used = Set(photos.lazy.flatMap(\.objects).map(\.label))
        for label in labels where !used.contains(label) { warnings.add(.withoutBoxes, label) }
    }

    private mutating func objects(of photo: StatedPhoto, _ header: ImageInformation) -> [AnnotatedPhoto.Object] {
        // Neither the size nor the orientation matters without boxes.
        guard !photo.boxes.isEmpty else { return [] }
        let frame = frame(of: photo, header)
        return objects(of: photo, in: frame)
    }

    private mutating func objects(of photo: StatedPhoto, in frame: Frame) -> [AnnotatedPhoto.Object] {
        var objects: [AnnotatedPhoto.Object] = []
        for box in photo.boxes {
            guard let fractions = fractions(of: box, in: photo, frame) else { continue }
            objects.append(AnnotatedPhoto.Object(label: box.label, box: fractions, isCrowd: box.isCrowd))
        }
        keptBoxes += objects.count
        return objects
    }

    /// The picture that boxes refer to: its size in pixels, and the orientation that turns it upright.
    private typealias Frame = (width: Double, height: Double, orientation: Orientation)

    /// Determines the picture that the boxes of a photo refer to from its stated and its actual size.
    private mutating func frame(of photo: StatedPhoto, _ header: ImageInformation) -> Frame {
        let upright = header.uprightSize
        let actual: Frame = (Double(upright.width), Double(upright.height), .up)
        let name = photo.url.lastPathComponent
        var stated = photo.size
        if let size = stated, !(size.width > 0 && size.height > 0 && size.width.isFinite && size.height.isFinite) {
            warnings.add(.invalidSize, name)
            stated = nil
        }
        guard let stated else {
            if header.orientation != .up { addAmbiguous(photo.url, header, "no size is stated") }
            return actual
        }
        // If the orientation swaps the sides, a landscape photo is stored as portrait, even if it has been scaled since.
        let swaps = header.orientation.swapsSides
        let showsFrame = swaps && stated.width != stated.height && actual.width != actual.height
        let isStored = showsFrame && (stated.width > stated.height) != (actual.width > actual.height)
        let expected = isStored ? (actual.height, actual.width) : (actual.width, actual.height)
        if isStored { warnings.add(.rotated, name) }
        if header.orientation != .up, !showsFrame {
            addAmbiguous(photo.url, header, "the stated size matches both the upright and the stored picture")
        }
        if (stated.width, stated.height) != expected {
            let sizes =
                "stated \(number(stated.width))x\(number(stated.height)), "
                + "actual \(number(expected.0))x\(number(expected.1))"
            warnings.add(.scaled, "\(name): \(sizes)")
            record(.otherSize, photo.url, sizes)
        }
        return (stated.width, stated.height, isStored ? header.orientation : .up)
    }

    private mutating func addAmbiguous(_ photo: URL, _ header: ImageInformation, _ reason: String) {
        warnings.add(.ambiguous, photo.lastPathComponent)
        record(.ambiguousOrientation, photo, "EXIF orientation \(header.orientation.rawValue); \(reason)")
    }

    /// Swaps the edges of a box of negative size, clips the box to its photo, and converts it to fractions of the upright photo; nil if it is
    /// not usable.
    private mutating func fractions(
        of box: StatedBox, in photo: StatedPhoto, _ frame: Frame
    ) -> NormalizedRectangle? {
        let isOfPhoto = photo.source == source
        let example = "\(box.entry) of \((isOfPhoto ? photo.url : photo.source).lastPathComponent)"
        let unit = photo.isInPixels ? " pixels" : ""
        func details() -> String {
            "\(box.entry): \(abbreviated(box.label)), x \(number(box.x)), y \(number(box.y)), "
                + "\(number(box.width)) x \(number(box.height))\(unit)"
        }
        func drop(
            _ kind: AnnotationWarnings.Kind, _ problemKind: BoxProblem.Kind, _ problem: String
        ) -> NormalizedRectangle? {
            warnings.add(kind, example)
            record(problemKind, photo.url, details())
            if firstDropped == nil { firstDropped = (photo.source, box.entry, problem) }
            return nil
        }
        let ends = (x: box.x + box.width, y: box.y + box.height)
        guard box.x.isFinite, box.y.isFinite, box.width.isFinite, box.height.isFinite, ends.x.isFinite, ends.y.isFinite
        else { return drop(.notFinite, .notFinite, "a box with a coordinate that is not a finite number") }
        for (name, size) in [("width", box.width), ("height", box.height)] where size == 0 {
            return drop(.notPositive, .empty, "a box with a \(name) of \(number(size))\(unit)")
        }
        let (left, right) = (min(box.x, ends.x), max(box.x, ends.x))
        let (top, bottom) = (min(box.y, ends.y), max(box.y, ends.y))
        let (columns, rows) = photo.isInPixels ? (frame.width, frame.height) : (1, 1)
        let edges = (left: left / columns, top: top / rows, right: right / columns, bottom: bottom / rows)
        guard edges.left < 1, edges.top < 1, edges.right > 0, edges.bottom > 0 else {
            return drop(.outside, .outside, "a box outside of the photo")
        }
        let excess = max(
            max(-edges.left, edges.right - 1) * frame.width, max(-edges.top, edges.bottom - 1) * frame.height)
        let clipped = NormalizedRectangle(
            left: max(edges.left, 0), top: max(edges.top, 0), right: min(edges.right, 1), bottom: min(edges.bottom, 1),
            storedWith: frame.orientation)
        // The part inside can be too narrow for the precision of a rectangle.
        guard clipped.width > 0, clipped.height > 0 else {
            return drop(.notPositive, .empty, "a box of almost no width or height inside the photo")
        }
        if box.width < 0 || box.height < 0 {
            warnings.add(.swapped, example)
            record(.swapped, photo.url, details())
        }
        // Half a hundredth of a pixel is a rounding error of numbers in text.
        if excess > 1.005 {
            warnings.add(.clipped, example)
            record(.clipped, photo.url, details())
        }
        return clipped
    }
}

extension NormalizedRectangle {
    /// Creates a rectangle in the upright image from its edges in an image stored with this orientation.
    fileprivate init(
        left: Double, top: Double, right: Double, bottom: Double, storedWith orientation: Orientation
    ) {
        let (columns, rows) = ((left, right), (top, bottom))
        func mirrored(_ edges: (Double, Double)) -> (Double, Double) { (1 - edges.1, 1 - edges.0) }
        let (x, y) =
            switch orientation {
            case .up: (columns, rows)
            case .upMirrored: (mirrored(columns), rows)
            case .down: (mirrored(columns), mirrored(rows))
            case .downMirrored: (columns, mirrored(rows))
            case .leftMirrored: (rows, columns)
            case .right: (mirrored(rows), columns)
            case .rightMirrored: (mirrored(rows), mirrored(columns))
            case .left: (rows, mirrored(columns))
            }
        self.init(x: Float(x.0), y: Float(y.0), width: Float(x.1 - x.0), height: Float(y.1 - y.0))
    }
}

/// Truncates a text of a file, which may have any length, for a message.
func abbreviated(_ text: String, _ length: Int = 40) -> String {
    text.count > length ? text.prefix(length - 1) + "…" : text
}

/// Formats a number without decimals if it is an integer.
private func number(_ value: Double) -> String { Int(exactly: value).map { "\($0)" } ?? "\(value)" }
