internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintTraining

/// The progress of an audit of the panel Photos.
struct AuditStatus: Encodable, Sendable {
    /// A number that increases with every change, also across audits.
    var version = 0
    var isRunning = false
    /// The number of photos that are read.
    var done = 0
    var total = 0
}

/// The audit of the panel Photos, with the numbers of the photos instead of their files.
struct PhotoAudit: Sendable {
    struct Finding: Sendable {
        let kind: Audit.Finding.Kind
        let ids: [Int]
        let reason: String
    }

    /// A validation photo that the trained model labels differently.
    struct Disagreement: Sendable {
        let id: Int
        /// The label of the photo during training.
        let label: String
        let predicted: String
        let confidence: Float
    }

    let audit: Audit
    /// The digest of the audited photos.
    let digest: String
    /// The numbers of the audited photos.
    let ids: Set<Int>
    let findings: [Finding]

    init(_ audit: Audit, of source: PhotoSource) {
        self.audit = audit
        digest = source.digest
        ids = Set(source.ids.values)
        let named = Dictionary(
            source.items.map { ($0.url, source.identifier(of: $0)) }, uniquingKeysWith: { first, _ in first })
        let found = audit.findings.map { finding in
            // The messages name the file of the user, and the page shows the labels.
            let reason = finding.files.reduce(finding.kind == .acrossLabels ? "" : finding.reason) { reason, file in
                reason.replacingOccurrences(of: file.path, with: named[file] ?? file.lastPathComponent)
            }
            return Finding(kind: finding.kind, ids: finding.files.compactMap { source.ids[$0] }, reason: reason)
        }
        // A changed label can give near-duplicates different labels.
        let across = Set(found.filter { $0.kind == .acrossLabels }.map(\.ids))
        let inNearDuplicates = Set(
            found.filter { [.acrossLabels, .nearDuplicates].contains($0.kind) }.flatMap(\.ids))
        let similar = found.filter { finding in
            switch finding.kind {
            case .nearDuplicates: !across.contains(finding.ids)
            // Copies can be a part of a larger group.
            case .copies: !inNearDuplicates.isSuperset(of: finding.ids)
            default: false
            }
        }
        findings = found + similar.map { Finding(kind: .acrossLabels, ids: $0.ids, reason: "") }
    }

    /// The properties of the data set, as sentences.
    var notes: [String] {
        var notes: [String] = []
        if let imbalance = audit.imbalance, imbalance >= 2 {
            notes.append(
                String(format: "The largest label has %.1f times as many photos as the smallest", imbalance)
                    + ": a model may favour it. Add photos of the small labels.")
        }
        notes += audit.findings.filter { $0.kind == .similarLabels }.map {
            "The labels \($0.reason) \(spellingSimilarity). Training learns them as different labels."
        }
        if let note = audit.rotationNote { notes.append(note + ".") }
        if let random = audit.randomSplit, random.leaked > 0 {
            notes.append(
                "In a random split, \(random.leaked) of \(random.images) validation photos would resemble training photos. "
                    + "Training keeps near-duplicates and bursts together.")
        }
        return notes
    }
}

extension PhotoStore {
    /// Starts an audit of the photos on another thread, unless one is running.
    func startAudit(threads: Int) throws {
        let source = try state.withLock { state -> PhotoSource? in
            guard !state.photos.isEmpty else {
                throw RequestError("There are no photos to check. Add photos first.", .conflict)
            }
            guard !state.auditStatus.isRunning else { return nil }
            (state.auditStatus.isRunning, state.auditStatus.done) = (true, 0)
            state.auditStatus.total = state.photos.count
            state.auditStatus.version += 1
            return state.source
        }
        guard let source else { return }
        let folder = state.withLock { $0.folder }
        Task { [self] in
            let audit = try await onDedicatedThread { [self] in
                Audit(source, workers: Workers(threads)) { done in
                    update(folder) { $0.auditStatus.done = done }
                }
            }
            update(folder) { state in
                state.audit = PhotoAudit(audit, of: source)
                state.auditStatus.isRunning = false
                state.version += 1
            }
        }
    }

    /// Changes the state of an audit, unless its photos were deleted.
    private func update(_ folder: PrivateFolder?, _ change: (inout State) -> Void) {
        state.withLock { state in
            guard state.folder === folder else { return }
            change(&state)
            state.auditStatus.version += 1
        }
    }

    /// The progress of the audit.
    var auditStatus: AuditStatus { state.withLock { $0.auditStatus } }

    /// The photos as training uses them, and their audit if it is current.
    var trainingData: (source: PhotoSource, audit: Audit?) {
        state.withLock { state in
            let source = state.source
            return (source, state.audit.flatMap { $0.digest == source.digest ? $0.audit : nil })
        }
    }

    /// Records the validation photos that a trained model labels differently.
    func record(_ evaluation: Evaluation?, of source: PhotoSource) {
        let mistakes = (evaluation?.results ?? []).filter { !$0.isCorrect }.sorted {
            ($0.confidences[$0.predicted]) > ($1.confidences[$1.predicted])
        }
        let disagreements = mistakes.compactMap { result in
            source.ids[result.url].map { id in
                PhotoAudit.Disagreement(
                    id: id, label: source.labels[result.label], predicted: source.labels[result.predicted],
                    confidence: result.confidences[result.predicted])
            }
        }
        state.withLock { state in
            state.disagreements = disagreements
            state.version += 1
        }
    }
}
