internal import ImprintCore
internal import ImprintModel

/// A PyTorch checkpoint; the reader uses only the tensors of the model.
///
/// Source: `torch/serialization.py` of PyTorch 2.
struct PyTorchCheckpoint {
    /// The tensors of the model, without the prefixes that wrappers of modules add to names.
    let tensors: StateDictionary
    /// Assumptions about what the file does not specify, as sentences.
    let notes: [String]

    /// The advice for checkpoints that contain more than tensors.
    static let advice = "Save only the tensors, with torch.save(model.state_dict(), path)"

    /// The maximum number of tensors.
    static let maximumTensorCount = 16_384

    /// A tensor of the file.
    private struct Entry {
        var name: String
        let tensor: StoredTensor
        /// Checks the bytes of the tensor's storage, and returns their offset in the file.
        let start: () throws(ImportError.Problem) -> Int
    }

    private init(_ entries: [Entry], in file: MappedFile, notes: [String]) throws(ImportError.Problem) {
        try Self.checkByteCount(entries, file)
        // Wrappers of modules (DataParallel, torch.compile) put a prefix before the names.
        var entries = entries
        for _ in 0..<4 {
            for prefix in ["module.", "_orig_mod."] {
                guard entries.contains(where: { $0.name.hasPrefix(prefix) }),
                    entries.allSatisfy({ $0.name.hasPrefix(prefix) || !$0.name.contains(".") })
                else { continue }
                for index in entries.indices where entries[index].name.hasPrefix(prefix) {
                    entries[index].name.removeFirst(prefix.count)
                }
            }
        }
        tensors = StateDictionary(
            entries.map { entry in
                (
                    entry.name,
                    StateTensor(shape: entry.tensor.shape) {
                        try entry.tensor.floats(in: file, storageAt: entry.start())
                    }
                )
            })
        self.notes = notes
    }

    /// Checks that all tensors together take at most twice the size of the file, plus 4 MiB, as 32-bit values.
    ///
    /// Twice the size is enough for 16-bit floating-point numbers. A small file could otherwise exhaust memory: 8-bit integers take
    /// four times their size, tensors may share a storage, and a stride of 0 repeats an element.
    private static func checkByteCount(_ entries: [Entry], _ file: MappedFile) throws(ImportError.Problem) {
        let limit = 2 * file.count + 4 << 20
        var byteCount = 0
        for entry in entries {
            let (size, overflow) = entry.tensor.count.multipliedReportingOverflow(by: MemoryLayout<Float>.stride)
            let (sum, overflow2) = byteCount.addingReportingOverflow(size)
            byteCount = overflow || overflow2 ? .max : sum
        }
        guard byteCount > limit, let largest = entries.max(by: { $0.tensor.count < $1.tensor.count }) else { return }
        throw .exceedsLimit(
            reason: "its tensors take \(SystemMemory.text(byteCount)) as float32, the largest "
                + "\(largest.name.debugDescription) of the shape \(largest.tensor.shape), expected at most "
                + "\(SystemMemory.text(limit)) for a file of \(SystemMemory.text(file.count))")
    }
}

// MARK: ZIP format

extension PyTorchCheckpoint {
    /// Reads a file of the format of PyTorch 1.6 and later.
    init(archive file: MappedFile) throws {
        let archive = try StoredArchive(file)
        guard let folder = archive.folder(), let pickle = archive.entry("\(folder)/data.pkl") else {
            throw ImportError.Problem.unknownFormat
        }
        if archive.entry("\(folder)/constants.pkl") != nil {
            throw ImportError.Problem.unsuitableModel(found: "a TorchScript program", advice: Self.advice)
        }
        if let entry = archive.entry("\(folder)/byteorder") {
            let order = file.text(try archive.content(of: entry)) ?? ""
            guard order == "little" else { throw Self.byteOrder }
        }
        let reader = try PickleReader(file, in: archive.content(of: pickle))
        try self.init(reader, file) { key throws(ImportError.Problem) in
            guard let entry = archive.entry("\(folder)/data/\(key)") else {
                throw .malformed(reason: "the archive has no entry \("\(folder)/data/\(key)".debugDescription)")
            }
            let byteCount = archive.byteCount(of: entry)
            return StorageFile(byteCount: byteCount) { () throws(ImportError.Problem) in
                try archive.content(of: entry).lowerBound
            }
        }
    }

    private static let byteOrder = ImportError.Problem.unsuitableModel(
        found: "a checkpoint from a big-endian machine",
        advice: "Save it again on a little-endian machine")
}

// MARK: Legacy format

extension PyTorchCheckpoint {
    /// Reads a file of the format of PyTorch before 1.6: five pickles, and the storages one after another.
    init(legacy file: MappedFile) throws {
        var end = 0
        func next() throws(ImportError.Problem) -> PickleReader {
            let reader = try PickleReader(file, in: end..<file.count)
            end = reader.end
            return reader
        }
        _ = try next()
        let version = try next()
        guard let version = version.heap.integer(version.root), version == 1001 else {
            throw ImportError.Problem.malformed(
                reason: "its format is not version 1001, the only version that PyTorch writes")
        }
        try Self.checkSystem(next())
        let object = try next()
        let locations = try Self.locations(try next(), of: object, file, from: end)
        try self.init(object, file) { key throws(ImportError.Problem) in
            guard let location = locations[key] else {
                throw .malformed(reason: "the storage \(key.debugDescription) is missing in its list of storages")
            }
            return StorageFile(byteCount: location.count) { location.lowerBound }
        }
    }

    /// Checks the dictionary that describes the machine that saved a file.
    private static func checkSystem(_ reader: PickleReader) throws(ImportError.Problem) {
        guard case .dictionary(let index) = reader.root else {
            throw .malformed(reason: "it does not describe the machine that saved it")
        }
        try reader.heap.forEachPair(in: index) { (key, value) throws(ImportError.Problem) in
            if try reader.heap.text(key) == "little_endian", case .bool(false) = value { throw byteOrder }
        }
    }

    /// Returns the range of each storage in the file.
    ///
    /// - Parameters:
    ///   - list: The list of the storages' names, in their order in the file.
    ///   - object: The pickle with the types of the storages.
    ///   - start: The end of the list in the file.
    private static func locations(
        _ list: PickleReader, of object: PickleReader, _ file: MappedFile, from start: Int
    ) throws(ImportError.Problem) -> [String: Range<Int>] {
        var sizes: [String: (element: Int, count: Int)] = [:]
        for storage in object.heap.storages {
            guard let key = try object.heap.text(.text(storage.key)) else { continue }
            let size = (storage.elementType.byteCount, storage.count)
            if let known = sizes.updateValue(size, forKey: key), known != size {
                throw .malformed(reason: "the storage \(key.debugDescription) has two sizes")
            }
            guard sizes.count <= maximumStorageCount else {
                throw .exceedsLimit(reason: "it has more than \(maximumStorageCount) storages")
            }
        }
        guard case .list(let index) = list.root else { throw .malformed(reason: "it has no list of storages") }
        var locations: [String: Range<Int>] = [:]
        var offset = start
        try list.heap.forEach(in: index) { (name) throws(ImportError.Problem) in
            guard let key = try list.heap.text(name), let size = sizes[key] else {
                throw .malformed(reason: "its list of storages contains one that no tensor uses")
            }
            let (byteCount, overflow) = size.count.multipliedReportingOverflow(by: size.element)
            guard file.count - offset >= 8, !overflow, byteCount <= file.count - offset - 8 else {
                throw .malformed(reason: "the file ends inside the storage \(key.debugDescription)")
            }
            guard file.load(UInt64.self, at: offset) == UInt64(size.count) else {
                throw .malformed(
                    reason: "the storage \(key.debugDescription) has \(file.load(UInt64.self, at: offset)) elements, "
                        + "expected \(size.count)")
            }
            let data = (offset + 8)..<(offset + 8 + byteCount)
            guard locations.updateValue(data, forKey: key) == nil else {
                throw .malformed(reason: "its list of storages has \(key.debugDescription) twice")
            }
            offset = data.upperBound
        }
        return locations
    }

    /// The maximum number of storages, which include the state of the optimizer.
    private static let maximumStorageCount = 1 << 16
}

// MARK: Safetensors

extension PyTorchCheckpoint {
    /// The maximum length of a header in bytes; parsed, it needs several times that.
    private static let maximumHeaderLength = 4 << 20

    /// Reads a safetensors file of at least 8 bytes.
    init(safetensors file: MappedFile) throws {
        let headerLength: Int
        do throws(SafetensorsError.Problem) {
            headerLength = try Safetensors.headerLength(
                file.load(UInt64.self, at: 0), fileLength: file.count)
        } catch {
            throw SafetensorsError(path: file.path, problem: error)
        }
        guard headerLength <= Self.maximumHeaderLength else {
            throw ImportError.Problem.exceedsLimit(
                reason: "its header has \(headerLength) bytes, expected at most \(Self.maximumHeaderLength)")
        }
        // The parsed names and shapes need several times the memory of the header.
        try ImportError.Problem.checkMemory(forElements: headerLength)
        let start = 8 + headerLength
        let header: Safetensors.Header
        // The file may be replaced at its path, so parse the header of the mapped bytes, like the tensors.
        do throws(SafetensorsError.Problem) {
            header = try Safetensors.Header(Array(file.bytes(8..<start)), dataLength: file.count - start)
        } catch {
            throw SafetensorsError(path: file.path, problem: error)
        }
        if header.metadata.keys.contains(where: { $0.hasPrefix("imprint.") }) {
            throw ImportError.Problem.unsuitableModel(
                found: "already an Imprint file", advice: "Use it without importing it")
        }
        guard header.tensors.count <= Self.maximumTensorCount else { throw Self.tooManyTensors(header.tensors.count) }
        let entries = try header.tensors.map { description in
            let tensor = try StoredTensor(
                description.name, shape: description.shape,
                strides: StoredTensor.contiguousStrides(description.shape), offset: 0,
                elementType: description.elementType, storageCount: description.count)
            let offset = start + description.byteRange.lowerBound
            return Entry(name: description.name, tensor: tensor) { offset }
        }
        try self.init(entries, in: file, notes: [])
    }

    fileprivate static func tooManyTensors(_ count: Int) -> ImportError.Problem {
        .exceedsLimit(reason: "it has \(count) tensors, expected at most \(maximumTensorCount)")
    }
}

// MARK: State dictionary

/// The bytes of a storage in a file.
private final class StorageFile {
    /// The number of bytes.
    let byteCount: Int
    private var start: Int?
    private let check: () throws(ImportError.Problem) -> Int

    /// - Parameter check: Checks the bytes, and returns their offset in the file.
    init(byteCount: Int, check: @escaping () throws(ImportError.Problem) -> Int) {
        self.byteCount = byteCount
        self.check = check
    }

    /// Returns the offset of the bytes in the file, and checks them the first time.
    func checkedStart() throws(ImportError.Problem) -> Int {
        if let start { return start }
        let start = try check()
        self.start = start
        return start
    }
}

extension PyTorchCheckpoint {
    /// The keys under which training programs save the tensors of the model, by precedence.
    private static let modelKeys = ["state_dict", "model", "model_state_dict", "model_ema", "state_dict_ema"]

    /// Finds the tensors of the model in a pickle.
    ///
    /// - Parameter find: Returns the storage with a name.
    private init(
        _ reader: PickleReader, _ file: MappedFile,
        storage find: (_ key: String) throws(ImportError.Problem) -> StorageFile
    ) throws {
        let heap = reader.heap
        let (dictionary, notes) = try Self.modelDictionary(reader)
        var storages: [String: StorageFile] = [:]
        var entries: [Entry] = []
        try heap.forEachPair(in: dictionary) { (key, value) throws(ImportError.Problem) in
            guard case .tensor(let index) = value, let name = try heap.text(key) else { return }
            guard entries.count < Self.maximumTensorCount else { throw Self.tooManyTensors(entries.count + 1) }
            let record = heap.tensors[Int(index)]
            let storage = heap.storages[Int(record.storage)]
            let storageKey = try heap.text(.text(storage.key)) ?? ""
            let bytes: StorageFile
            if let known = storages[storageKey] { bytes = known } else { bytes = try find(storageKey) }
            storages[storageKey] = bytes
            let (needed, overflow) = storage.count.multipliedReportingOverflow(by: storage.elementType.byteCount)
            guard !overflow, needed <= bytes.byteCount else {
                throw .malformed(
                    reason:
                        "the storage \(storageKey.debugDescription) has \(counted(bytes.byteCount, "byte")), too few for "
                        + counted(storage.count, "element"))
            }
            let tensor = try Self.tensor(name, record, storage, heap)
            entries.append(Entry(name: name, tensor: tensor, start: bytes.checkedStart))
        }
        try self.init(entries, in: file, notes: notes)
    }

    private static func tensor(
        _ name: String, _ record: PickleHeap.Tensor, _ storage: PickleHeap.Storage, _ heap: PickleHeap
    ) throws(ImportError.Problem) -> StoredTensor {
        func integers(_ index: UInt32) throws(ImportError.Problem) -> [Int] {
            // One more than the limit, so that the error names the number of dimensions.
            let values = heap.elements(of: index, limit: StoredTensor.maximumRank + 1)
            let integers = values.compactMap(heap.integer)
            guard integers.count == values.count else {
                throw .malformed(reason: "the tensor \(name.debugDescription) has a length that is not an integer")
            }
            return integers
        }
        let (offset, overflow) = record.offset.addingReportingOverflow(storage.view.lowerBound)
        guard record.offset >= 0, !overflow else {
            throw .malformed(reason: "the tensor \(name.debugDescription) has the offset \(record.offset)")
        }
        return try StoredTensor(
            name, shape: integers(record.size), strides: integers(record.strides), offset: offset,
            elementType: storage.elementType, storageCount: storage.view.upperBound)
    }

    /// Returns the dictionary of the model's tensors: the object itself, or a value of it.
    private static func modelDictionary(_ reader: PickleReader) throws -> (index: UInt32, notes: [String]) {
        let heap = reader.heap
        func hasTensors(_ index: UInt32) throws -> Bool {
            var found = false
            try heap.forEachPair(in: index) { (_, value) throws(ImportError.Problem) in
                if case .tensor = value { found = true }
            }
            return found
        }
        guard case .dictionary(let root) = reader.root else {
            throw ImportError.Problem.unsuitableModel(
                found: "a PyTorch file without a dictionary of tensors", advice: advice)
        }
        var found: [String: UInt32] = [:]
        try heap.forEachPair(in: root) { (key, value) throws(ImportError.Problem) in
            if case .dictionary(let index) = value, let key = try heap.text(key), modelKeys.contains(key) {
                found[key] = index
            }
        }
        let keys = try modelKeys.filter { try found[$0].map(hasTensors) ?? false }
        if let key = keys.first, let index = found[key] {
            let others = keys.dropFirst().map(\.debugDescription).joined(separator: ", ")
            return (
                index,
                others.isEmpty
                    ? []
                    : ["The file has several models. Imprint uses \(key.debugDescription), not \(others)."]
            )
        }
        guard try hasTensors(root) else {
            throw ImportError.Problem.unsuitableModel(
                found: "a PyTorch file without a dictionary of tensors", advice: advice)
        }
        return (root, [])
    }
}
