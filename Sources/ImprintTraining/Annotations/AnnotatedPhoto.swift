public import Foundation
public import ImprintImages

/// A photo with the bounding boxes of its objects.
public struct AnnotatedPhoto: Hashable, Sendable {
    /// An object in the photo.
    public struct Object: Hashable, Sendable {
        /// The label of the object.
        public var label: String
        /// The bounding box, relative to the upright photo.
        public var box: NormalizedRectangle
        /// Whether the box is around a crowd, in which an evaluation counts detections neither as correct nor as wrong.
        public var isCrowd: Bool

        /// Creates an object.
        public init(label: String, box: NormalizedRectangle, isCrowd: Bool = false) {
            (self.label, self.box, self.isCrowd) = (label, box, isCrowd)
        }
    }

    /// The file of the photo.
    public var url: URL
    /// The width of the photo in pixels.
    public var width: Int
    /// The height of the photo in pixels.
    public var height: Int
    /// The objects; empty if the photo shows none of the labels.
    public var objects: [Object]

    /// Creates an annotated photo.
    public init(url: URL, width: Int, height: Int, objects: [Object]) {
        (self.url, self.width, self.height, self.objects) = (url, width, height, objects)
    }
}
