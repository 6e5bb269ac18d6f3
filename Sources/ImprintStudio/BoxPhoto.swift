internal import Foundation
internal import ImprintImages
internal import ImprintTraining

/// A photo with bounding boxes, as the page shows and edits it.
struct BoxPhoto: Encodable, Sendable {
    /// An object and its bounding box, relative to the upright photo.
    struct Object: Codable, Sendable {
        let label: String
        let box: NormalizedRectangle
        /// Whether the box is around a crowd; the page only preserves this property of the annotation file.
        var isCrowd: Bool?
    }

    /// The properties that the page edits.
    struct Edit: Decodable, Sendable {
        /// The revision of the photo that was edited.
        let revision: Int
        let objects: [Object]
        let isBackground: Bool
    }

    /// The name of the file, which identifies the photo.
    let name: String
    /// The size of the upright photo in pixels.
    let width: Int
    let height: Int
    var objects: [Object] = []
    /// Whether a photo without boxes is known to show none of the objects, so that training uses it.
    var isBackground = false
    /// The number of edits and of changes of the annotation file, so that a page cannot overwrite an edit of another page or program.
    var revision = 0

    /// The number at the start of the name; 0 for other names.
    var number: Int { Int(name.prefix { $0.isNumber }) ?? 0 }
    /// Whether the annotation file lists the photo.
    var isAnnotated: Bool { !objects.isEmpty || isBackground }
}

extension BoxPhoto {
    /// The maximum number of objects of a photo.
    static let objectLimit = 500

    /// Applies an edit after checking it.
    mutating func apply(_ edit: Edit) throws {
        guard edit.revision == revision else {
            throw RequestError(
                "The boxes of this photo were changed in another tab or by another program. They are shown again now.",
                .conflict)
        }
        guard edit.objects.count <= Self.objectLimit else {
            throw RequestError(
                "A photo may have at most \(Self.objectLimit) boxes, but this one has \(edit.objects.count).")
        }
        // The annotation file may come from another program.
        let known = Set(objects.map(\.label))
        for object in edit.objects {
            try Self.check(label: object.label, isKnown: known.contains(object.label))
            guard object.box.isWithinImage else {
                throw RequestError(
                    "A box of \(object.label.debugDescription) is empty or outside of the photo. Draw it again.")
            }
        }
        objects = edit.objects.map { Object(label: $0.label, box: $0.box.clippedToImage, isCrowd: $0.isCrowd) }
        isBackground = edit.isBackground && edit.objects.isEmpty
        revision += 1
    }

    /// Checks the label of an object.
    /// - Parameter isKnown: Whether the photo has the label already.
    static func check(label: String, isKnown: Bool = false) throws {
        try UserText.checkLength(label, "A label", fix: "Choose another label.")
        guard label != ImageFolder.noLogoLabel else {
            throw RequestError(
                "The label \(label.debugDescription) is for photos that show no object. Choose another label.")
        }
        if !isKnown { try UserText.checkCharacters(label, "A label", fix: "Choose another label.") }
    }
}
