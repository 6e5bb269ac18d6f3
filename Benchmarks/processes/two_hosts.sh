#!/usr/bin/env bash
# Trains a classifier and a detector with two processes on two simulated hosts, and compares the files with those of a single process.
#
# The hosts are network namespaces of this machine with host names of their own, connected by a virtual cable; the processes exchange all
# messages through TCP. It needs root, iproute2 and Open MPI:
#
#     Benchmarks/processes/two_hosts.sh .build-mpi/release/imprint
set -euo pipefail
imprint=$(realpath "$1")
folder=$(mktemp -d)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
data=$(realpath "$(dirname "$0")/../../datasets/two-circles.json")

clean_up() {
    ip netns del imprint-one 2>/dev/null || true
    ip netns del imprint-two 2>/dev/null || true
    rm -rf "$folder"
}
trap clean_up EXIT

for host in one two; do
    ip netns add imprint-$host
    ip -n imprint-$host link set lo up
done
ip link add imprint-one netns imprint-one type veth peer name imprint-two netns imprint-two
ip -n imprint-one address add 10.91.0.1/24 dev imprint-one
ip -n imprint-two address add 10.91.0.2/24 dev imprint-two
for host in one two; do ip -n imprint-$host link set imprint-$host up; done

# Runs a command on a host. mpirun calls it like ssh, with the host's address.
cat >"$folder/on" <<'END'
#!/usr/bin/env bash
case $1 in 10.91.0.1 | one) host=one ;; *) host=two ;; esac
shift
exec ip netns exec imprint-$host unshare --uts bash -c "hostname imprint-$host; $*"
END
chmod +x "$folder/on"

cd "$folder"
"$imprint" draw "$data" --output photos --count 400 --seed 1 --quiet
training=(train photos --network logonet --input-size 64 --epochs 2 --seed 1 --threads 1 --quiet)
detector=(train-detector --artwork "Mark=$folder/mark.svg" --epochs 1 --seed 1 --threads 1 --quiet)
printf '<svg xmlns="http://www.w3.org/2000/svg" width="96" height="96"><circle cx="40" cy="56" r="32" fill="#c03"/><circle cx="80" cy="16" r="12" fill="#036"/></svg>' >mark.svg

for job in training detector; do
    declare -n arguments=$job
    "$imprint" "${arguments[@]}" --output "$job-1.imprint"
    ./on one "cd $folder && OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -np 2 \
        --host 10.91.0.1:1,10.91.0.2:1 --mca plm_rsh_agent $folder/on --mca btl tcp,self \
        --mca btl_tcp_if_include 10.91.0.0/24 --mca oob_tcp_if_include 10.91.0.0/24 --wdir $folder \
        $imprint ${arguments[*]} --output $job-2.imprint"
    cmp "$job-1.imprint" "$job-2.imprint"
    echo "$job: the files of one process and of two hosts are identical."
done
ip -n imprint-one -s link show imprint-one | sed -n '3,6p'
