internal import ImprintCore
internal import ImprintImages

/// An object that a detector found in a frame, with an identity that it keeps from frame to frame.
public struct TrackedObject: Identifiable, Hashable, Sendable {
    /// The identity: 1 for the first object that a tracker sees, 2 for the next, and so on.
    public let id: Int
    /// The object in the current frame.
    public let object: DetectedObject
    /// The number of frames in which the object was found, including this one.
    public let frameCount: Int
}

/// A tracker that follows objects over the frames of a video by the overlap of their boxes.
///
/// A detection continues the track of the same label whose last box overlaps it most, if their IoU is at least `minimumIoU`. Pairs with
/// a larger overlap are matched first, and detections without a match start a new track. This is the IoU tracker of Bochinski, Eiselein and
/// Sikora ("High-speed tracking-by-detection without using image information", 2017), extended to remember tracks that are lost for a few
/// frames. It does not have a motion model, so an object must move by less than about half of its size between two frames.
public struct ObjectTracker: Sendable {
    /// The minimum intersection over union (IoU) of two boxes of one object in successive frames, 0…1.
    public let minimumIoU: Float
    /// The number of successive frames for which a lost object keeps its identity.
    public let maximumMissedFrames: Int

    private struct Track {
        let id: Int
        var object: DetectedObject
        var frameCount = 1
        var missedFrames = 0
    }

    private var tracks: [Track] = []
    private var lastID = 0

    /// Creates a tracker with the default values: a minimum IoU of 0.3, and 5 missed frames.
    public init() { (minimumIoU, maximumMissedFrames) = (0.3, 5) }

    /// Creates a tracker.
    /// - Throws: `ImprintError.invalidSetting` if `minimumIoU` is not more than 0 and at most 1, or `maximumMissedFrames` is negative.
    public init(minimumIoU: Float, maximumMissedFrames: Int) throws(ImprintError) {
        guard minimumIoU > 0 && minimumIoU <= 1 else {
            throw .invalidSetting(
                name: "minimumIoU", found: messageText(minimumIoU), expected: "more than 0, and at most 1")
        }
        guard maximumMissedFrames >= 0 else {
            throw .invalidSetting(name: "maximumMissedFrames", found: "\(maximumMissedFrames)", expected: "0 or more")
        }
        (self.minimumIoU, self.maximumMissedFrames) = (minimumIoU, maximumMissedFrames)
    }

    /// Assigns the objects of the next frame to tracks.
    /// - Parameter objects: The objects, in any order.
    /// - Returns: The objects with their identities, in the same order.
    public mutating func update(with objects: [DetectedObject]) -> [TrackedObject] {
        var assigned = [Int?](repeating: nil, count: objects.count)
        var isTaken = [Bool](repeating: false, count: tracks.count)
        for (track, object, _) in pairs(objects) where !isTaken[track] && assigned[object] == nil {
            isTaken[track] = true
            assigned[object] = track
            tracks[track].object = objects[object]
            tracks[track].frameCount += 1
            tracks[track].missedFrames = 0
        }
        for track in isTaken.indices where !isTaken[track] { tracks[track].missedFrames += 1 }
        let tracked = objects.enumerated().map { index, object in
            let track: Track
            if let assigned = assigned[index] {
                track = tracks[assigned]
            } else {
                lastID += 1
                track = Track(id: lastID, object: object)
                tracks.append(track)
            }
            return TrackedObject(id: track.id, object: object, frameCount: track.frameCount)
        }
        tracks.removeAll { $0.missedFrames > maximumMissedFrames }
        return tracked
    }

    /// Returns the tracks and objects of the same label that overlap enough, by descending overlap.
    private func pairs(_ objects: [DetectedObject]) -> [(track: Int, object: Int, overlap: Float)] {
        var pairs: [(track: Int, object: Int, overlap: Float)] = []
        for (track, known) in tracks.enumerated() {
            for (index, object) in objects.enumerated() where object.label == known.object.label {
                let overlap = object.box.iou(with: known.object.box)
                if overlap >= minimumIoU { pairs.append((track, index, overlap)) }
            }
        }
        return pairs.sorted { ($1.overlap, $0.track, $0.object) < ($0.overlap, $1.track, $1.object) }
    }
}
