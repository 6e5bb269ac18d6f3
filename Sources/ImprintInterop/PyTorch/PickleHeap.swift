internal import ImprintModel

/// The values of a pickle, in arrays whose total size is limited.
struct PickleHeap {
    /// The elements of a tuple or list, or the keys and values of a dictionary in turn.
    struct Container {
        /// The indices of the first and the last cell; `Cell.end` if the container is empty.
        fileprivate var first = Cell.end
        fileprivate var last = Cell.end
        /// The number of elements.
        fileprivate(set) var count: UInt32 = 0
    }

    /// An element of a container and the index of the next one.
    fileprivate struct Cell {
        let value: PickleValue
        var next = Cell.end

        static let end = UInt32.max
    }

    /// The memory of one or more tensors, in another part of the file.
    struct Storage {
        /// The index of the text that names it.
        let key: UInt32
        let elementType: Safetensors.ElementType
        /// The number of elements.
        let count: Int
        /// The elements of this view of the storage; all of them if it is not a view.
        let view: Range<Int>
    }

    /// A part of a storage.
    struct Tensor {
        /// The index of the storage.
        let storage: UInt32
        /// The index of the first element in the storage.
        let offset: Int
        /// The indices of the containers of its lengths and of its strides.
        let (size, strides): (UInt32, UInt32)
    }

    /// The limit of all values in bytes; a checkpoint of 20,000 tensors is below it.
    static let limit = 12 << 20

    let file: MappedFile
    private(set) var storages: [Storage] = []
    private(set) var tensors: [Tensor] = []
    private var texts: [Range<Int>] = []
    private var longs: [Int64] = []
    private var containers: [Container] = []
    private var cells: [Cell] = []
    private var budget = Budget()

    init(_ file: MappedFile) { self.file = file }

    /// The bytes that the pickle may still need.
    private struct Budget {
        private var remaining = PickleHeap.limit

        mutating func take(_ byteCount: Int) throws(ImportError.Problem) {
            guard byteCount <= remaining else {
                throw .exceedsLimit(
                    reason: "its pickle has too many values, expected at most \(PickleHeap.limit >> 20) MiB")
            }
            remaining -= byteCount
        }

        /// Appends an element to an array, and returns its index.
        mutating func add<Element>(
            _ element: Element, to list: inout [Element]
        ) throws(ImportError.Problem) -> UInt32 {
            try take(MemoryLayout<Element>.stride)
            list.append(element)
            return UInt32(list.count - 1)
        }
    }

    /// Counts bytes that the pickle needs.
    ///
    /// - Throws: `ImportError.Problem.exceedsLimit` if the pickle needs more than `limit`.
    mutating func reserve(_ byteCount: Int) throws(ImportError.Problem) { try budget.take(byteCount) }

    // MARK: Scalars

    /// Adds a text, which remains in the file.
    mutating func text(_ range: Range<Int>) throws(ImportError.Problem) -> PickleValue {
        .text(try budget.add(range, to: &texts))
    }

    /// Adds an integer.
    mutating func integer(_ value: Int64) throws(ImportError.Problem) -> PickleValue {
        if let small = Int32(exactly: value) { return .integer(small) }
        return .long(try budget.add(value, to: &longs))
    }

    /// Returns an integer; nil for another value.
    func integer(_ value: PickleValue) -> Int? {
        switch value {
        case .integer(let value): Int(value)
        case .long(let index): Int(longs[Int(index)])
        default: nil
        }
    }

    /// The maximum length of a text that is read, in bytes.
    static let maximumTextLength = 1024

    /// Returns a text; nil for another value.
    ///
    /// - Throws: `ImportError.Problem` if it is too long or not UTF-8.
    func text(_ value: PickleValue) throws(ImportError.Problem) -> String? {
        guard case .text(let index) = value else { return nil }
        let range = texts[Int(index)]
        guard range.count <= Self.maximumTextLength else {
            throw .exceedsLimit(
                reason: "its pickle has a name of \(range.count) bytes, expected at most \(Self.maximumTextLength)")
        }
        guard let text = file.text(range) else {
            throw .malformed(reason: "its pickle has a name at offset \(range.lowerBound) that is not UTF-8")
        }
        return text
    }

    // MARK: Containers

    /// Adds a container.
    mutating func container(
        _ values: some Collection<PickleValue> = []
    ) throws(ImportError.Problem) -> UInt32 {
        let index = try budget.add(Container(), to: &containers)
        try append(values, to: index)
        return index
    }

    /// Appends values to a container.
    mutating func append(_ values: some Collection<PickleValue>, to index: UInt32) throws(ImportError.Problem) {
        for value in values {
            let cell = try budget.add(Cell(value: value), to: &cells)
            let last = containers[Int(index)].last
            if last == Cell.end {
                containers[Int(index)].first = cell
            } else {
                cells[Int(last)].next = cell
            }
            containers[Int(index)].last = cell
            containers[Int(index)].count += 1
        }
    }

    /// Returns the number of elements of a container.
    func count(of index: UInt32) -> Int { Int(containers[Int(index)].count) }

    /// Calls `body` with each element of a container.
    func forEach(
        in index: UInt32, _ body: (PickleValue) throws(ImportError.Problem) -> Void
    ) throws(ImportError.Problem) {
        var cell = containers[Int(index)].first
        while cell != Cell.end {
            try body(cells[Int(cell)].value)
            cell = cells[Int(cell)].next
        }
    }

    /// Calls `body` with each key and value of a dictionary.
    func forEachPair(
        in index: UInt32, _ body: (_ key: PickleValue, _ value: PickleValue) throws(ImportError.Problem) -> Void
    ) throws(ImportError.Problem) {
        var key: PickleValue?
        try forEach(in: index) { (element) throws(ImportError.Problem) in
            if let known = key {
                try body(known, element)
                key = nil
            } else {
                key = element
            }
        }
    }

    /// Returns the first `limit` elements of a container.
    func elements(of index: UInt32, limit: Int) -> [PickleValue] {
        var found: [PickleValue] = []
        var cell = containers[Int(index)].first
        while cell != Cell.end && found.count < limit {
            found.append(cells[Int(cell)].value)
            cell = cells[Int(cell)].next
        }
        return found
    }

    // MARK: Tensors

    /// Adds the storage of a persistent identifier.
    ///
    /// The identifier is the tuple ("storage", type, key, device, element count). In the legacy format, the tuple also has the key,
    /// offset and element count of a view, or None.
    mutating func storage(_ identifier: PickleValue) throws(ImportError.Problem) -> PickleValue {
        guard case .tuple(let index) = identifier, case let parts = elements(of: index, limit: 7),
            parts.count == 5 || parts.count == 6, try text(parts[0]) == "storage",
            case .global(.storage(let elementType)) = parts[1], case .text(let key) = parts[2],
            let count = integer(parts[4]), count >= 0
        else { throw .malformed(reason: "its pickle has a storage without a type, name or element count") }
        var range = 0..<count
        if parts.count == 6, case .tuple(let view) = parts[5] {
            let view = elements(of: view, limit: 4)
            guard view.count == 3, let first = integer(view[1]), let part = integer(view[2]), first >= 0, part >= 0,
                first <= count, part <= count - first
            else { throw .malformed(reason: "its pickle has a view beyond the end of its storage") }
            range = first..<(first + part)
        }
        return .storage(
            try budget.add(Storage(key: key, elementType: elementType, count: count, view: range), to: &storages))
    }

    /// Adds the tensor with the arguments (storage, offset, size, stride, …).
    mutating func tensor(_ arguments: [PickleValue]) throws(ImportError.Problem) -> PickleValue {
        guard arguments.count >= 4, case .storage(let storage) = arguments[0], let offset = integer(arguments[1]),
            case .tuple(let size) = arguments[2], case .tuple(let strides) = arguments[3]
        else { throw .malformed(reason: "its pickle has a tensor without a storage, offset, size or stride") }
        return .tensor(
            try budget.add(Tensor(storage: storage, offset: offset, size: size, strides: strides), to: &tensors))
    }
}
