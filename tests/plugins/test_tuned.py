from types import SimpleNamespace

from harness.plugins import tuned
from harness.records import TunedConfig


def config(block: int, num_warps: int = 4, **more):
    return SimpleNamespace(kwargs={"BLOCK": block}, num_warps=num_warps, num_stages=3, num_ctas=1, **more)


def test_an_option_that_only_one_build_knows_changes_nothing_at_its_null_value():
    old, new = config(64), config(64, maxnreg=None, ir_override=None, num_consumer_groups=0, warp_specialize=False)
    assert tuned.same(tuned.tuned_config(old), tuned.tuned_config(new))
    assert not tuned.same(tuned.tuned_config(old), tuned.tuned_config(config(64, maxnreg=128)))


def test_a_hook_is_no_part_of_a_config():
    assert tuned.same(tuned.tuned_config(config(64, pre_hook=print)), tuned.tuned_config(config(64, pre_hook=None)))


def test_the_recorded_winner_is_found_as_the_candidate_object_itself():
    candidates = [config(64), config(128, pre_hook=print)]
    assert tuned.find(candidates, tuned.tuned_config(config(128))) is candidates[1]
    assert tuned.find(candidates, tuned.tuned_config(config(256))) is None


def test_the_hash_of_the_candidates_does_not_depend_on_their_order():
    one, two = tuned.tuned_config(config(64)), tuned.tuned_config(config(128))
    assert tuned.candidates_hash([one, two]) == tuned.candidates_hash([two, one])
    assert tuned.candidates_hash([one]) != tuned.candidates_hash([one, two])


def test_a_key_is_json_with_the_types_of_its_items_kept():
    class Odd:
        def __repr__(self):
            return "Odd()"

    assert tuned.key_text((64, "64", True, None, Odd())) == '[64,"64",true,null,"Odd()"]'


def test_a_row_names_a_candidate_by_what_was_chosen():
    found = tuned.config_text("mm", TunedConfig({"BLOCK_M": 64}, {"num_warps": 4, "num_ctas": 1, "num_stages": 3}))
    assert found == "mm(BLOCK_M=64,num_warps=4,num_stages=3)"
    assert "num_ctas=2" in tuned.config_text("mm", TunedConfig({}, {"num_ctas": 2}))


def test_the_source_hash_is_of_the_text_and_nothing_else():
    one, other = SimpleNamespace(src="def k(): 1", cache_key="a"), SimpleNamespace(src="def k(): 1", cache_key="b")
    assert tuned.source_hash(one) == tuned.source_hash(other)
    assert tuned.source_hash(one) != tuned.source_hash(SimpleNamespace(src="def k(): 2"))
