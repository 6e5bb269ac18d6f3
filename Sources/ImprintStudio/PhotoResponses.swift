internal import FlyingFox
internal import Foundation
internal import ImprintImages
internal import ImprintTraining

/// The response with the labels of the panel Photos and the findings of their audit.
struct PhotosResponse: Encodable {
    struct Label: Encodable {
        let label: String
        let count: Int
    }

    struct Photo: Encodable {
        let id: Int
        let label: String
        let name: String
    }

    struct Finding: Encodable {
        let photos: [Photo]
        let reason: String
    }

    /// The findings of one kind.
    struct Group: Encodable {
        let kind: String
        let title: String
        let advice: String
        /// The number of findings; `findings` are the first of them.
        let count: Int
        let findings: [Finding]
    }

    /// The number of changes; a response with a smaller number is older.
    let version: Int
    let count: Int
    /// The maximum number of photos.
    let limit: Int
    let labels: [Label]
    /// Whether there is an audit.
    let isAudited: Bool
    /// The number of photos that were added since the audit.
    let uncheckedCount: Int
    /// The properties of the data set, as sentences.
    let notes: [String]
    let groups: [Group]
    /// The reason why the photos are not sufficient for training; nil if they are.
    let shortage: String?
    /// The change that can be undone, as a sentence; nil without one.
    let undo: String?

    /// The maximum number of findings of one kind.
    private static let findingLimit = 20

    /// - Parameter hasModel: Whether a model that was trained on the photos is in use.
    init(_ state: PhotoStore.State, hasModel: Bool) {
        version = state.version
        count = state.photos.count
        limit = PhotoStore.limit
        let source = state.source
        let counts = Dictionary(grouping: state.photos, by: \.label).mapValues(\.count)
        labels = source.labels.map { Label(label: $0, count: counts[$0] ?? 0) }
        isAudited = state.audit != nil
        uncheckedCount = state.audit.map { audit in state.photos.count { !audit.ids.contains($0.id) } } ?? 0
        notes = state.audit?.notes ?? []
        shortage = source.shortage
        undo = state.changes.last?.sentence
        let photos = Dictionary(
            uniqueKeysWithValues: state.photos.map { ($0.id, Photo(id: $0.id, label: $0.label, name: $0.name)) })
        groups =
            Self.disagreements(hasModel ? state.disagreements : [], photos)
            + Self.groups(state.audit?.findings ?? [], photos)
    }

    /// Returns the findings that the changes of the user have not fixed.
    private static func groups(_ findings: [PhotoAudit.Finding], _ photos: [Int: Photo]) -> [Group] {
        Audit.Finding.Kind.allCases.compactMap { kind in
            let open = findings.filter { $0.kind == kind }.compactMap { finding -> Finding? in
                let left = finding.ids.compactMap { photos[$0] }
                guard !left.isEmpty, left.count > 1 || finding.ids.count == 1 else { return nil }
                if kind == .acrossLabels, Set(left.map(\.label)).count < 2 { return nil }
                return Finding(photos: left, reason: finding.reason)
            }
            guard !open.isEmpty else { return nil }
            // Bursts need no fix, so the page shows only their number.
            return Group(
                kind: kind.rawValue, title: kind.title, advice: kind.advice, count: open.count,
                findings: kind == .bursts ? [] : Array(open.prefix(findingLimit)))
        }
    }

    /// Returns the photos that the trained model labels differently, unless their label was changed; empty without any.
    private static func disagreements(_ found: [PhotoAudit.Disagreement], _ photos: [Int: Photo]) -> [Group] {
        let open = found.compactMap { item -> Finding? in
            guard let photo = photos[item.id], photo.label == item.label else { return nil }
            return Finding(
                photos: [photo],
                reason: "The model predicts “\(item.predicted)” with \(percent(Double(item.confidence))).")
        }
        guard !open.isEmpty else { return [] }
        return [
            Group(
                kind: "disagreements", title: "Photos that the trained model labels differently",
                advice:
                    "The model was not trained on these validation photos. Check each label; the model can also be wrong.",
                count: open.count, findings: Array(open.prefix(findingLimit)))
        ]
    }
}

private struct AddedResponse: Encodable {
    let id: Int
}

extension Studio {
    /// Returns the response to a request for the photos of the panel Photos, their audit, or training on them; nil for other requests.
    func photoResponse(to request: HTTPRequest, _ body: Data?) async throws -> HTTPResponse? {
        switch (request.method, request.path) {
        case (.GET, "/photos"): break
        case (.POST, "/photos"):
            let (label, name) = (try request.label, try request.required("name"))
            let photo = try self.photo(body)
            try await check(photo)
            return try .json(AddedResponse(id: photos.add(photo, label: label, name: name)))
        case (.PUT, "/photos"): try photos.relabel(try Self.ids(request), to: try request.label)
        case (.DELETE, "/photos"):
            if request.parameter("ids") == "all" { try removeAllPhotos() } else { try photos.remove(Self.ids(request)) }
        case (.POST, "/photos-undo"): try photos.undo()
        case (.GET, "/photo"):
            guard let id = Int(try request.required("id")) else {
                throw RequestError("The id of a photo is not a whole number. Add ?id=1, for example.")
            }
            // The page opens a photo in a new tab, which a sandbox would prevent.
            return HTTPResponse(
                statusCode: .ok,
                headers: [
                    .contentType: "image/jpeg",
                    HTTPHeader("Content-Security-Policy"): "default-src 'none'; style-src 'unsafe-inline'",
                ], body: try await Self.picture(photos.photo(id), isSmall: request.parameter("size") == "small"))
        case (.POST, "/audit"):
            try photos.startAudit(threads: trainer.threads)
            return try .json(photos.auditStatus)
        case (.GET, "/audit"): return try await auditStatus(request)
        case (.POST, "/photo-training"):
            let (source, audit) = photos.trainingData
            try trainer.start(source, audit: audit, photoConfiguration) { [photos] in photos.record($0, of: source) }
            return try .json(trainer.status)
        case (.GET, "/report"): return try report()
        case (.GET, "/export"): return try await export(try request.required("format"))
        default: return nil
        }
        let hasModel = trainer.report != nil
        return try .json(photos.state.withLock { PhotosResponse($0, hasModel: hasModel) })
    }

    /// Returns the numbers in the parameter `ids`, such as "1,2".
    private static func ids(_ request: HTTPRequest) throws -> Set<Int> {
        let parts = try request.required("ids").split(separator: ",", omittingEmptySubsequences: false)
        let ids = parts.compactMap { Int($0) }
        guard ids.count == parts.count else {
            throw RequestError("The ids of the photos are not whole numbers. Add ?ids=1,2, for example.")
        }
        return Set(ids)
    }

    private func removeAllPhotos() throws {
        let status = trainer.status
        guard status.stage != .running || status.panel != .photos else {
            throw RequestError("Training is using the photos. Stop it first.", .conflict)
        }
        try photos.removeAll()
    }

    /// Returns a photo as a JPEG, scaled down, on another thread.
    @concurrent
    private static func picture(_ photo: LabelledPhoto, isSmall: Bool) async throws -> Data {
        let side = isSmall ? 160 : 1200
        let image = try ImageFile.decode(photo.url, coveringShortSide: ImageFile.shortSideToDecode(covering: side))
        return Data(try ImageFile.encodeJPEG(image.shrunk(toShortSide: side).flattenedOnWhite()))
    }

    /// Returns the progress of the audit as soon as it is newer than the status on the page, after ten seconds, or when the studio ends.
    private func auditStatus(_ request: HTTPRequest) async throws -> HTTPResponse {
        let known = request.parameter("after").flatMap { Int($0) } ?? -1
        let deadline = ContinuousClock().now + .seconds(10)
        while photos.auditStatus.version <= known, !trainer.hasEnded, .now < deadline {
            try await Task.sleep(for: .milliseconds(100))
        }
        return try .json(photos.auditStatus)
    }
}
