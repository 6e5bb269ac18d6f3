public import Foundation
public import ImprintCore
internal import ImprintImages

/// An error of reading bounding-box annotations.
public enum BoxAnnotationsError: DescribedError, Equatable {
    /// A file cannot be read; `reason` comes from the operating system.
    case unreadable(file: URL, reason: String)
    /// A file is larger than `limit` bytes.
    case tooLarge(file: URL, byteCount: Int, limit: Int)
    /// Reading a file needs more memory than is available, in bytes.
    case tooLargeForMemory(file: URL, byteCount: Int, needed: Int)
    /// The folder of the photos is a file or does not exist; `found` describes it.
    case noPhotoFolder(file: URL, found: String)
    /// A file or folder does not have a known format; `found` describes it, and `fix` is a sentence about the fix, or empty.
    case unknownFormat(file: URL, found: String, fix: String = "")
    /// A file cannot be parsed; `format` is JSON, XML, YAML or text.
    case invalidSyntax(file: URL, format: String, reason: String)
    /// An entry is incomplete or has a value of the wrong type; `entry` is empty if the whole file is concerned.
    case invalidEntry(file: URL, entry: String, found: String, expected: String)
    /// Two entries have the same id.
    case duplicateID(file: URL, entry: String, id: String)
    /// A box has a category id or class number without a name; `known` describes those with a name.
    case unknownClass(file: URL, entry: String, id: String, known: String)
    /// A line of a YOLO file has a sixth column, so that the boxes are detections rather than annotations.
    case hasConfidence(file: URL, entry: String)
    /// A data set annotates something other than boxes; `found` names it.
    case unsupported(file: URL, found: String)
    /// The photos of a YOLO data set have no text files; `folder` is their folder or list, and `textFolder` is where the text file of the
    /// first photo was searched for.
    case missingTextFiles(folder: URL, photos: Int, textFolder: URL)
    /// The text file of a photo in a YOLO data set is not a file that can be read; `found` describes it, such as "a folder".
    case unusableTextFile(file: URL, photo: URL, found: String)
    /// The annotations list no photos.
    case noPhotos(file: URL)
    /// None of the photos can be read; `reason` is the error of the first one, and `folders` are those in which photos were searched for.
    case noReadablePhotos(file: URL, photos: Int, reason: String, folders: [URL])
    /// None of the boxes can be used; `entry` and `problem` describe the first one.
    case noUsableBoxes(file: URL, entry: String, problem: String)

    /// The error in one to three sentences.
    public var description: String {
        switch self {
        case .unreadable(let file, let reason):
            "\(file.displayPath): cannot be read: \(reason). Expected an annotation file or a folder. Check the path."
        case .tooLarge(let file, let byteCount, let limit):
            "\(file.displayPath): the file has \(byteCount) bytes. Expected at most \(limit). Split the data set."
        case .tooLargeForMemory(let file, let byteCount, let needed):
            "\(file.displayPath): the file has \(byteCount) bytes, and reading it needs \(SystemMemory.text(needed)) of memory, "
                + "which is not available. Free memory, or split the data set."
        case .noPhotoFolder(let file, let found):
            "\(file.displayPath): found \(found). Expected the folder of the photos. Check the path."
        case .unknownFormat(let file, let found, let fix):
            "\(file.displayPath): found \(found). Expected COCO or Create ML JSON, a Pascal VOC file or folder of XML, "
                + "or a YOLO folder with data.yaml or classes.txt.\(fix.isEmpty ? "" : " \(fix)")"
        case .invalidSyntax(let file, let format, let reason):
            "\(file.displayPath): the file is not valid \(format): \(reason). Export the annotations again."
        case .invalidEntry(let file, let entry, let found, let expected):
            "\(file.displayPath): \(entry.isEmpty ? "" : "\(entry): ")\(found). Expected \(expected). "
                + "Correct the \(entry.isEmpty ? "file" : "entry")."
        case .duplicateID(let file, let entry, let id):
            "\(file.displayPath): \(entry): an earlier entry has the id \(id), too. Expected unique ids. "
                + "Correct one of the ids."
        case .unknownClass(let file, let entry, let id, let known):
            "\(file.displayPath): \(entry) has the class \(id), which has no name. Expected \(known). "
                + "Add its name or correct the entry."
        case .hasConfidence(let file, let entry):
            "\(file.displayPath): \(entry) has a sixth column, so the boxes are detections. "
                + "Expected class, centre x, centre y, width and height. Use the text files of the data set."
        case .unsupported(let file, let found):
            "\(file.displayPath): found \(found). Expected bounding boxes or polygons. Export the data set as boxes."
        case .missingTextFiles(let folder, let photos, let textFolder):
            "\(folder.displayPath): found \(counted(photos, "photo")) but no text file of boxes for any of them in "
                + "\(textFolder.displayPath). Expected labels/a.txt for images/a.jpg, or a.txt beside a.jpg. Check both folders."
        case .unusableTextFile(let file, let photo, let found):
            "\(file.displayPath): found \(found). Expected the text file with the boxes of \(photo.lastPathComponent). "
                + "Replace it, or remove it if the photo shows no object."
        case .noPhotos(let file):
            "\(file.displayPath): the annotations list no photos. Expected at least one. Check the file."
        case .noReadablePhotos(let file, let photos, let reason, let folders):
            "\(file.displayPath): none of the \(photos) photos can be read. \(reason) "
                + "Expected the photos in \(folders.map(\.displayPath).joined(separator: " or ")). Check the folder of the "
                + "photos and their names."
        case .noUsableBoxes(let file, let entry, let problem):
            "\(file.displayPath): \(entry) has \(problem), and no other box can be used either. "
                + "Expected boxes of positive size inside the photo. Export the annotations again."
        }
    }
}
